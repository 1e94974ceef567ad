import { type Sql, StoreUnavailable, type Tx } from "../store/db.ts";
import { HASH_BYTES } from "./proof/hash.ts";
import { type LeafRange, nodesOf, type TreeNode } from "./proof/ranges.ts";
import { foldRight } from "./proof/tree.ts";
import { indexBlock } from "./reading/block-index.ts";
import { rootOfComplete, TREE } from "./tree-hash.ts";

/**
 * Number of hashes in a tile: 8 levels of the tree, as in C2SP's tlog-tiles. Also the number of entries in a block of
 * the index.
 */
export const TILE_WIDTH = 256;
const TILE_LEVELS = 8;

/**
 * Creates the tiles and the index for the blocks that were completed between two sizes of a workspace's ledger. MUST
 * run in the transaction that appends the entries, after they are appended, and no block may be skipped.
 * @throws StoreUnavailable if this program did not write the previous tiles or the entries
 */
export async function completeTiles(
  tx: Tx,
  workspaceId: number,
  before: number,
  after: number,
): Promise<void> {
  for (let tile = Math.floor(before / TILE_WIDTH); tile < Math.floor(after / TILE_WIDTH); tile++) {
    const rows = await tx.all<{ leaf: Uint8Array; bytes: string }>(
      "SELECT leaf, bytes FROM ledger WHERE workspace_id = $1 AND seq > $2 AND seq <= $3 ORDER BY seq",
      [workspaceId, tile * TILE_WIDTH, (tile + 1) * TILE_WIDTH],
    );
    const hashes = joined(rows.map(({ leaf }) => leaf));
    if (rows.length !== TILE_WIDTH || rows.some(({ leaf }) => leaf.length !== HASH_BYTES)) {
      throw new StoreUnavailable(
        `tile 0/${tile} of the ledger's tree includes entries that this program did not write`,
      );
    }
    tx.write(INSERT, [workspaceId, 0, tile, hashes]);
    indexBlock(tx, workspaceId, tile, rows);
    await carry(tx, workspaceId, { level: 1, index: tile, hash: rootOfComplete(hashes) });
  }
}

const INSERT = "INSERT INTO ledger_tiles (workspace_id, level, tile, hashes) VALUES ($1, $2, $3, $4)";
const GROW = "UPDATE ledger_tiles SET hashes = $4 WHERE workspace_id = $1 AND level = $2 AND tile = $3";

/** Adds the root of a complete tile to the tile above. */
async function carry(
  tx: Tx,
  workspaceId: number,
  { level, index, hash }: { readonly level: number; readonly index: number; readonly hash: Uint8Array },
): Promise<void> {
  const tile = Math.floor(index / TILE_WIDTH);
  const place = index % TILE_WIDTH;
  const known = place === 0 ? new Uint8Array(0) : await readTile(tx, workspaceId, level, tile);
  if (known?.length !== place * HASH_BYTES)
    throw new StoreUnavailable(`tile ${level}/${tile} of the ledger's tree is incomplete`);
  const hashes = joined([known, hash]);
  tx.write(place === 0 ? INSERT : GROW, [workspaceId, level, tile, hashes]);
  if (place === TILE_WIDTH - 1)
    await carry(tx, workspaceId, { level: level + 1, index: tile, hash: rootOfComplete(hashes) });
}

/** How many of a workspace's entries have tiles and an index: a multiple of 256. */
export async function tiledSize(sql: Pick<Sql, "get">, workspaceId: number): Promise<number> {
  const row = await sql.get<{ tile: number }>(
    "SELECT tile FROM ledger_tiles WHERE workspace_id = $1 AND level = 0 ORDER BY tile DESC LIMIT 1",
    [workspaceId],
  );
  return row === undefined ? 0 : (row.tile + 1) * TILE_WIDTH;
}

/** The hashes of a workspace's tree. A reader caches the tiles it has read, so use one per request. */
export class TreeReader {
  readonly #sql: Pick<Sql, "all" | "get">;
  readonly #workspaceId: number;
  readonly #tiles = new Map<string, Promise<Uint8Array>>();

  constructor(sql: Pick<Sql, "all" | "get">, workspaceId: number) {
    this.#sql = sql;
    this.#workspaceId = workspaceId;
  }

  /** The root of the tree when it had `size` leaves. */
  async root(size: number): Promise<Uint8Array> {
    return size === 0 ? TREE.empty() : this.hashOf({ start: 0, end: size });
  }

  hashesOf(ranges: readonly LeafRange[]): Promise<Uint8Array[]> {
    return Promise.all(ranges.map((range) => this.hashOf(range)));
  }

  /** @throws Error if the range extends past the end of the tree */
  async hashOf(range: LeafRange): Promise<Uint8Array> {
    const hash = foldRight(TREE, await this.subtreesOf(range));
    if (hash === undefined) throw new Error("an empty range has no hash");
    return hash;
  }

  /** The hashes of the complete subtrees that make up a range, from left to right. */
  subtreesOf(range: LeafRange): Promise<Uint8Array[]> {
    return Promise.all(nodesOf(range).map((node) => this.#node(node)));
  }

  async #node({ level, index }: TreeNode): Promise<Uint8Array> {
    const tileLevel = Math.floor(level / TILE_LEVELS);
    const width = 2 ** (level % TILE_LEVELS);
    const first = index * width;
    const tile = Math.floor(first / TILE_WIDTH);
    const hashes = await this.#tile(tileLevel, tile);
    const start = (first % TILE_WIDTH) * HASH_BYTES;
    const end = start + width * HASH_BYTES;
    if (hashes.length < end) throw new Error(`tile ${tileLevel}/${tile} of the ledger's tree is incomplete`);
    return rootOfComplete(hashes.subarray(start, end));
  }

  #tile(level: number, tile: number): Promise<Uint8Array> {
    const key = `${level}/${tile}`;
    const known = this.#tiles.get(key);
    if (known) return known;
    const read = this.#readTile(level, tile);
    this.#tiles.set(key, read);
    return read;
  }

  async #readTile(level: number, tile: number): Promise<Uint8Array> {
    const stored = await readTile(this.#sql, this.#workspaceId, level, tile);
    if (stored || level > 0) return stored ?? new Uint8Array(0);
    // The last entries have no tile yet.
    const rows = await this.#sql.all<{ leaf: Uint8Array }>(
      "SELECT leaf FROM ledger WHERE workspace_id = $1 AND seq > $2 AND seq <= $3 ORDER BY seq",
      [this.#workspaceId, tile * TILE_WIDTH, (tile + 1) * TILE_WIDTH],
    );
    return joined(rows.map(({ leaf }) => leaf));
  }
}

/** The hashes of a stored tile; undefined when there is none. */
export async function readTile(
  sql: Pick<Sql, "get">,
  workspaceId: number,
  level: number,
  tile: number,
): Promise<Uint8Array | undefined> {
  const row = await sql.get<{ hashes: Uint8Array }>(
    "SELECT hashes FROM ledger_tiles WHERE workspace_id = $1 AND level = $2 AND tile = $3",
    [workspaceId, level, tile],
  );
  return row?.hashes;
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
