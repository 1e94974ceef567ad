import type { ReadOnlyDatabase } from "../../store/sqlite/read-only.ts";
import { HASH_BYTES, isEqual } from "../proof/hash.ts";
import { GrowingTree } from "../proof/tree.ts";
import { TILE_WIDTH } from "../tiles.ts";
import { TREE } from "../tree-hash.ts";
import { counted, type VerificationReport } from "./report.ts";
import type { LeafWitness, TreePosition } from "./walk.ts";

const TILE_BYTES = TILE_WIDTH * HASH_BYTES;
/** Maximum number of tiles that are listed. Further ones are counted. */
const MOST_REMEMBERED = 32;

const TILE = "SELECT hashes FROM main.ledger_tiles WHERE workspace_id = $1 AND level = $2 AND tile = $3";
const PLACES = "SELECT level, tile FROM main.ledger_tiles WHERE workspace_id = $1 ORDER BY level, tile";

/** The position at which the leaves in the tiles begin to differ from those of the entries. */
export interface Difference {
  readonly first: number;
  /** Whether several leaves differ, and none after the first one matches. */
  readonly isToTheEnd: boolean;
}

interface TilePosition {
  readonly level: number;
  readonly tile: number;
}

interface TileDifference extends TilePosition {
  /** The first entry under the first hash that differs. */
  readonly seq: number;
}

/**
 * Compares the stored tiles of a ledger's tree with those that its entries result in. During the walk, it also
 * provides the entries' hashes from the tiles.
 */
export class TileCheck implements LeafWitness {
  readonly #database: ReadOnlyDatabase;
  readonly #workspaceId: number;
  readonly #report: VerificationReport;
  /** Number of leaf tiles that must exist. */
  readonly #complete: number;
  /** By level, the hashes of the incomplete tile above the leaves. */
  readonly #growing = new Map<number, { tile: number; readonly hashes: Uint8Array[] }>();
  readonly #differing: TileDifference[] = [];
  readonly #surplus: TilePosition[] = [];
  /** Number of complete leaf tiles that exist, if more than must exist. */
  #once = 0;
  #more = 0;
  #stored: { readonly tile: number; readonly hashes: Uint8Array | undefined } | undefined;
  #first = 0;
  #different = 0;
  #sameAfter = 0;

  /** @param size Number of entries for which there must be tiles */
  constructor(database: ReadOnlyDatabase, workspaceId: number, size: number, report: VerificationReport) {
    this.#database = database;
    this.#workspaceId = workspaceId;
    this.#report = report;
    this.#complete = Math.floor(size / TILE_WIDTH);
  }

  leafAt(seq: number): Uint8Array | undefined {
    const start = ((seq - 1) % TILE_WIDTH) * HASH_BYTES;
    return this.#leavesAround(seq)?.subarray(start, start + HASH_BYTES);
  }

  isLeaf(seq: number, leaf: Uint8Array): boolean | undefined {
    const hashes = this.#leavesAround(seq);
    if (hashes === undefined) return undefined;
    const start = ((seq - 1) % TILE_WIDTH) * HASH_BYTES;
    for (let at = 0; at < HASH_BYTES; at++) if (hashes[start + at] !== leaf[at]) return false;
    return true;
  }

  /**
   * MUST be called with each step, in order. @param tile Root of the tile that this entry completes, in the tree of
   * the entries
   */
  take({ seq, leaf }: TreePosition, tile: Uint8Array | null): void {
    if (seq > this.#complete * TILE_WIDTH) return;
    const isSame = leaf ? this.isLeaf(seq, leaf) : undefined;
    if (isSame !== undefined) this.#compareLeaf(seq, isSame);
    if (tile) this.#push(1, tile);
  }

  /** Null if the tiles match the entries. Known after the last step. */
  get difference(): Difference | null {
    if (this.#first === 0) return null;
    return { first: this.#first, isToTheEnd: this.#sameAfter === 0 && this.#different > 1 };
  }

  /**
   * Compares the rest and looks for surplus tiles. MUST be called after the last step and before `report`.
   * @param isLost Whether the tree is unknown from some entry on
   */
  end(isLost: boolean): void {
    if (!isLost) {
      for (const [level, { tile, hashes }] of this.#growing) {
        if (hashes.length > 0) this.#compare(level, tile, hashes);
      }
    }
    const rows = this.#database.rows<TilePosition>(PLACES, [this.#workspaceId]);
    for (const { level, tile } of rows)
      if (!this.#isExpected(level, tile)) this.#noteSurplus({ level, tile });
  }

  /** Number of entries that once existed according to surplus tiles; 0 if there are none. */
  get entriesOnce(): number {
    return this.#once * TILE_WIDTH;
  }

  /**
   * Reports what is wrong with the tiles.
   * @param isRewritten The entries are not those the tiles were made from, so differing tiles are not reported again.
   * @param isCut The last entries are missing, so their remaining tiles are not reported again.
   */
  report(isRewritten: boolean, isCut: boolean): void {
    if (!isRewritten) {
      for (const { level, tile, seq } of this.#differing) {
        this.#report.tampered(
          "tile_changed",
          `Tile ${level}/${tile} of the tree has a hash for entry ${seq} that does not match the entries: it was changed, and proofs that use it fail.`,
          seq,
        );
      }
      if (this.#more > 0)
        this.#report.tampered("tile_changed", `${counted(this.#more)} more tiles differ from the entries.`);
    }
    if (isRewritten || isCut) return;
    for (const { level, tile } of this.#surplus) {
      this.#report.tampered(
        "tile_surplus",
        `There is a tile ${level}/${tile} of the tree, or a part of it, without entries: it was added.`,
      );
    }
  }

  #isExpected(level: number, tile: number): boolean {
    let below = this.#complete;
    for (let at = 1; at < level && below > 0; at++) below = Math.floor(below / TILE_WIDTH);
    return level >= 0 && tile >= 0 && tile < (level === 0 ? below : Math.ceil(below / TILE_WIDTH));
  }

  #noteSurplus(place: TilePosition): void {
    const next = Math.max(this.#once, this.#complete);
    if (place.level === 0 && place.tile === next) this.#once = next + 1;
    if (this.#surplus.length < MOST_REMEMBERED) this.#surplus.push(place);
  }

  #compareLeaf(seq: number, isSame: boolean): void {
    if (isSame) {
      if (this.#first > 0) this.#sameAfter += 1;
      return;
    }
    this.#different += 1;
    if (this.#first === 0) this.#first = seq;
    const tile = Math.floor((seq - 1) / TILE_WIDTH);
    const last = this.#differing.at(-1);
    if (last?.level !== 0 || last.tile !== tile) this.#note({ level: 0, tile, seq });
  }

  #push(level: number, hash: Uint8Array): void {
    const at = this.#growing.get(level) ?? { tile: 0, hashes: [] };
    this.#growing.set(level, at);
    at.hashes.push(hash);
    if (at.hashes.length < TILE_WIDTH) return;
    this.#compare(level, at.tile, at.hashes);
    const tree = new GrowingTree(TREE);
    for (const each of at.hashes) tree.append(each);
    at.hashes.length = 0;
    at.tile += 1;
    this.#push(level + 1, tree.root());
  }

  #compare(level: number, tile: number, hashes: readonly Uint8Array[]): void {
    const stored = this.#read(level, tile);
    const width = TILE_WIDTH ** (level + 1);
    const place = hashes.findIndex((hash, index) => {
      const start = index * HASH_BYTES;
      return !isEqual(hash, stored?.subarray(start, start + HASH_BYTES) ?? new Uint8Array(0));
    });
    if (stored === undefined) this.#reportMissing(level, tile);
    else if (place >= 0) this.#note({ level, tile, seq: tile * width + place * (width / TILE_WIDTH) + 1 });
    else if (stored.length !== hashes.length * HASH_BYTES) this.#noteSurplus({ level, tile });
  }

  /** The leaves of the tile that contains an entry. */
  #leavesAround(seq: number): Uint8Array | undefined {
    const tile = Math.floor((seq - 1) / TILE_WIDTH);
    if (tile >= this.#complete) return undefined;
    if (this.#stored?.tile !== tile) this.#stored = { tile, hashes: this.#readLeaves(tile) };
    return this.#stored.hashes;
  }

  #readLeaves(tile: number): Uint8Array | undefined {
    const hashes = this.#read(0, tile);
    if (hashes === undefined) this.#reportMissing(0, tile);
    else if (hashes.length !== TILE_BYTES) this.#note({ level: 0, tile, seq: tile * TILE_WIDTH + 1 });
    return hashes?.length === TILE_BYTES ? hashes : undefined;
  }

  #reportMissing(level: number, tile: number): void {
    const first = tile * TILE_WIDTH ** (level + 1) + 1;
    this.#report.tampered(
      "tile_missing",
      `Tile ${level}/${tile} of the tree, with the hashes from entry ${first} on, is missing.`,
      first,
    );
  }

  #note(differing: TileDifference): void {
    if (this.#differing.length < MOST_REMEMBERED) this.#differing.push(differing);
    else this.#more += 1;
  }

  #read(level: number, tile: number): Uint8Array | undefined {
    const row = this.#database.get<{ hashes: unknown }>(TILE, [this.#workspaceId, level, tile]);
    if (row === undefined) return undefined;
    return row.hashes instanceof Uint8Array ? row.hashes : new Uint8Array(0);
  }
}
