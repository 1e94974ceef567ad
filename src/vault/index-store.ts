import type { Boundary } from "../access/memory-scope.ts";
import type { Scored } from "./search/top-k.ts";

/** A live segment. */
export interface SegmentPlace {
  /** Never reused: a segment's bytes never change. */
  readonly id: number;
  readonly scopeId: number;
}

/** The segments inside a caller's boundary, or those of one scope: with words, or with copies of a space's vectors. */
export type SegmentRange =
  | { readonly workspaceId: number; readonly boundary: Boundary }
  | { readonly scopeId: number; readonly space: number | null };

/** A question's vector in a space. */
export interface SpaceVector {
  readonly space: number;
  readonly vector: Float32Array;
}

/** A passage as it is returned. */
export interface StoredPassage {
  readonly chunkId: string;
  readonly documentId: string;
  readonly title: string;
  readonly sourceUri: string | null;
  /** JSON. */
  readonly metadata: string;
  readonly scope: string;
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** One state of the index: all of these read the same, whatever has been written since. */
export interface IndexState {
  /** Those of one scope in the order of their keys. */
  segments(range: SegmentRange): Promise<SegmentPlace[]>;
  /**
   * Passes each segment's bytes on before it reads the next: together they may be 100 MB. `take` MUST copy them.
   * @throws Error if one is missing
   */
  readSegments(ids: readonly number[], take: (id: number, bytes: Uint8Array) => void): Promise<void>;
  /** Keys of the documents in these scopes that have all of these hashed values. */
  documentsWith(scopes: readonly number[], hashes: readonly Uint8Array[]): Promise<ReadonlySet<number>>;
  /** Cosine similarities of those passages that have a vector in the space. */
  similarities(question: SpaceVector, passages: readonly number[]): Promise<Map<number, number>>;
  /**
   * The nearest passages of these scopes that `isShown` accepts, best first. A passage may have a vector before its
   * document becomes visible and after it is hidden. Nothing outside the scopes is read.
   */
  nearest(
    question: SpaceVector,
    scopes: readonly number[],
    limit: number,
    isShown: (passage: number) => boolean,
  ): Promise<Scored[]>;
  /** The nearest of those passages that have a vector in the space, best first. All of them are in these scopes. */
  nearestOf(
    question: SpaceVector,
    scopes: readonly number[],
    limit: number,
    passages: readonly number[],
  ): Promise<Scored[]>;
  /** When the documents of these passages were written, in milliseconds. */
  updatedAt(passages: readonly number[]): Promise<Map<number, number>>;
  passages(passages: readonly number[]): Promise<Map<number, StoredPassage>>;
}

/** What the vault's threads read from the store. */
export interface IndexStore {
  /**
   * Runs `work` on one state of the index. `work` MUST await nothing but that state, and MUST be done before the next
   * `read`. It may run again, on another state, if the connection to the store was lost.
   * @throws IndexUnreadable
   */
  read<Result>(work: (state: IndexState) => Promise<Result>): Promise<Result>;
  close(): Promise<void>;
}

/** The store cannot be read now. */
export class IndexUnreadable extends Error {
  override readonly name = "IndexUnreadable";

  constructor(cause: Error) {
    super(cause.stack ?? cause.message, { cause });
  }
}
