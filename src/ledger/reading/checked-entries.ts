import { SharedWork } from "../../base/shared-work.ts";
import type { Sql } from "../../store/db.ts";
import { leafHash } from "../entry.ts";
import { LedgerChanged } from "../ledger-changed.ts";
import { HASH_BYTES, isEqual } from "../proof/hash.ts";
import { readTile } from "../tiles.ts";
import { rootOfComplete } from "../tree-hash.ts";
import { BLOCK } from "./block-index.ts";
import type { StoredEntry } from "./query.ts";

/** Number of blocks whose leaves are cached, 8 KiB each. The next page of a list mostly reads the same blocks. */
const REMEMBERED = 64;
/** Number of values in one `IN`. Unused parameters are null. */
const IN_WIDTH = 64;
const IN_PLACES = Array.from({ length: IN_WIDTH }, (_, index) => `$${index + 2}`).join(", ");
const SOME = `SELECT seq, leaf, bytes FROM ledger WHERE workspace_id = $1 AND seq IN (${IN_PLACES})`;
const RANGE = "SELECT seq, leaf, bytes FROM ledger WHERE workspace_id = $1 AND seq >= $2 AND seq <= $3";

/** Reads single entries of blocks whose hash is known. Returns no entry that the hash does not cover. */
export class CheckedEntries {
  readonly #db: Pick<Sql, "all" | "get">;
  readonly #leaves = new Map<string, Uint8Array>();
  readonly #reads = new SharedWork<Uint8Array | undefined>();

  constructor(db: Pick<Sql, "all" | "get">) {
    this.#db = db;
  }

  /** The concatenated leaves of a block; undefined if the stored tile does not have the block's hash. */
  async leavesOf(workspaceId: number, block: number, root: Uint8Array): Promise<Uint8Array | undefined> {
    const key = `${workspaceId}/${block}`;
    return this.#leaves.get(key) ?? this.#reads.run(key, () => this.#readLeaves(workspaceId, block, root));
  }

  async #readLeaves(workspaceId: number, block: number, root: Uint8Array): Promise<Uint8Array | undefined> {
    const hashes = await readTile(this.#db, workspaceId, 0, block);
    // Hashing a tile takes 110 µs.
    if (hashes?.length !== BLOCK * HASH_BYTES || !isEqual(rootOfComplete(hashes), root)) return undefined;
    const [oldest] = this.#leaves.keys();
    if (oldest !== undefined && this.#leaves.size >= REMEMBERED) this.#leaves.delete(oldest);
    this.#leaves.set(`${workspaceId}/${block}`, hashes);
    return hashes;
  }

  /**
   * Entries of one block, in the order of `seqs`.
   * @param leaves the block's concatenated leaves
   * @throws LedgerChanged if an entry is missing or is not the one that was signed
   */
  async read(
    workspaceId: number,
    block: number,
    leaves: Uint8Array,
    seqs: readonly number[],
  ): Promise<StoredEntry[]> {
    const rows = new Map((await this.#rows(workspaceId, seqs)).map((row) => [row.seq, row]));
    return seqs.map((seq) => {
      const start = (seq - 1 - block * BLOCK) * HASH_BYTES;
      const leaf = leaves.subarray(start, start + HASH_BYTES);
      const row = rows.get(seq);
      if (row && isEqual(row.leaf, leaf) && isEqual(leafHash(row.bytes), leaf)) return row;
      throw new LedgerChanged(
        row ? `entry ${seq} is not the one that was signed` : `entry ${seq} of the ledger is missing`,
        seq,
      );
    });
  }

  async #rows(workspaceId: number, seqs: readonly number[]): Promise<StoredEntry[]> {
    const [first = 0, last = 0] = [Math.min(...seqs), Math.max(...seqs)];
    if (last - first + 1 === seqs.length) {
      return this.#db.all<StoredEntry>(RANGE, [workspaceId, first, last]);
    }
    const rows: StoredEntry[] = [];
    for (let from = 0; from < seqs.length; from += IN_WIDTH) {
      const some: (number | null)[] = seqs.slice(from, from + IN_WIDTH);
      while (some.length < IN_WIDTH) some.push(null);
      rows.push(...(await this.#db.all<StoredEntry>(SOME, [workspaceId, ...some])));
    }
    return rows;
  }
}
