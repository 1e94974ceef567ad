import type { Sql, Tx } from "../../store/db.ts";
import type { SegmentChange } from "../messages.ts";

/** The space whose vectors are meant. */
export interface VectorsOf {
  readonly id: number;
  readonly name: string;
}

/** A passage's vector. `key`: the passage's key. */
export interface PassageVector {
  readonly key: number;
  readonly vector: Float32Array;
}

/** A scope in which passages are looked for. */
export interface PassageLocation {
  readonly workspaceId: number;
  readonly scope: string;
}

/** The vectors of the spaces, as the main thread writes them. The workers read them: see `IndexState`. */
export interface VectorStore {
  /** Whether there is a place for vectors. Without it, passages are marked as missing, for a later start to fill in. */
  readonly isAvailable: boolean;
  /** Makes room for vectors of this length, if that is not done yet. */
  makeRoom(tx: Tx, space: VectorsOf, dimensions: number): void;
  /** Removes a slice of the space's vectors, and what `makeRoom` made after the last. @returns whether there may be more */
  drop(tx: Tx, space: VectorsOf): Promise<boolean>;
  /** Adds vectors of a new document's passages. */
  insert(tx: Tx, space: VectorsOf, scopeId: number, vectors: readonly PassageVector[]): void;
  /** Adds missing vectors of one scope. Passages that have one keep it. */
  fill(tx: Tx, space: VectorsOf, scopeId: number, vectors: readonly PassageVector[]): Promise<void>;
  has(sql: Sql, space: VectorsOf, key: number): Promise<boolean>;
  /**
   * Removes the vectors of passages with keys from `first` to `last`, both inclusive. If there are `segments`, they
   * contain copies, which are removed by themselves.
   */
  remove(tx: Tx, space: VectorsOf, first: number, last: number): void;
  /** For each hash, the vector of any passage in this scope whose title and text have it. */
  ofEqual(
    sql: Pick<Sql, "all" | "get">,
    space: VectorsOf,
    place: PassageLocation,
    hashes: readonly Uint8Array[],
  ): Promise<(Float32Array | undefined)[]>;
  /** Null if the vectors are not copied into segments. */
  readonly segments: VectorSegments | null;
  /** Null if the vectors are not stored in blocks that become sparse. */
  readonly blocks: VectorBlocks | null;
}

/** Rounded copies of a model's vectors, in segments of their scope. */
export interface VectorSegments {
  /** Whether this space has any: the vectors of `builtin/lexical` are in the scope's other segments. */
  isFor(space: VectorsOf): boolean;
  /** @throws Raced if one of the removed segments is no longer there */
  swap(tx: Tx, space: VectorsOf, scopeId: number, change: SegmentChange): Promise<void>;
  /** Scopes with more than one segment of a space. */
  unmerged(sql: Sql): Promise<readonly { readonly id: number; readonly workspaceId: number }[]>;
}

/** Blocks of vectors, of which a removal leaves empty places. */
export interface VectorBlocks {
  /** Vectors in a block. */
  readonly size: number;
  /** Passages whose vectors should be moved, if more than half of the scope's places are free; otherwise none. */
  sparse(sql: Sql, space: VectorsOf, scopeId: number): Promise<readonly number[]>;
  /** Rewrites vectors into the scope's newest block. Deleted ones stay deleted. */
  move(tx: Tx, space: VectorsOf, scopeId: number, keys: readonly number[]): Promise<void>;
}
