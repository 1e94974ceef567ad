import type { Boundary } from "../access/memory-scope.ts";
import type { JobFailure } from "../reading/job-errors.ts";

export type { JobFailure };

/** What the vault's workers are asked and answer. All of it passes `postMessage`: plain values and bytes. */

export type SearchMode = "hybrid" | "keyword" | "vector";

/** A metadata value: what a filter compares with. */
export type MetadataValue = string | number | boolean;
export type Metadata = Readonly<Record<string, MetadataValue>>;

/** Vectors to search: the space they are in, and the question's own where a model made it. */
export interface VectorQuestion {
  readonly space: number;
  /** Null: the space is `builtin/lexical`'s, and the worker makes the vector itself. */
  readonly vector: Float32Array | null;
}

export interface SearchRequest {
  readonly workspaceId: number;
  readonly boundary: Boundary;
  readonly query: string;
  readonly topK: number;
  readonly mode: SearchMode;
  /** Hashes of the names and values that a document must have, all of them. */
  readonly filter: readonly Uint8Array[];
  /** Characters of all passages together at most. */
  readonly maxCharacters: number | null;
  /** After so many milliseconds a document counts half. */
  readonly recency: { readonly halfLifeMs: number; readonly now: number } | null;
  readonly explain: boolean;
  readonly vectors: VectorQuestion | null;
}

/** Where a passage stood in one part of the search, from 1; null where that part did not find it. */
export interface PartExplained {
  readonly rank: number | null;
  readonly score: number;
}

export interface Explained {
  readonly keyword: PartExplained | null;
  readonly vector: PartExplained | null;
  /** What the score was multiplied with for the document's age. */
  readonly recency: number | null;
  /** Passages that say the same and were left out for this one. */
  readonly duplicates: readonly string[];
}

export interface FoundPassage {
  readonly documentId: string;
  readonly chunkId: string;
  readonly title: string;
  readonly text: string;
  readonly scope: string;
  readonly score: number;
  readonly sourceUri: string | null;
  readonly start: number;
  readonly end: number;
  readonly metadata: Metadata;
  readonly explain: Explained | null;
}

export interface SearchAnswer {
  readonly passages: readonly FoundPassage[];
  /** What was really done. */
  readonly mode: SearchMode;
  readonly corrected: Readonly<Record<string, readonly string[]>>;
}

/** A document to be read, cut into passages and indexed. */
export interface PrepareRequest {
  /** The key that the document will have. */
  readonly document: number;
  readonly title: string;
  readonly content:
    | { readonly kind: "text"; readonly text: string; readonly type: string }
    | { readonly kind: "base64"; readonly data: string; readonly type: string };
}

export interface PreparedPassage {
  readonly start: number;
  readonly end: number;
  /** SHA-256 of title and text, its first 16 bytes: equal passages are embedded once. */
  readonly hash: Uint8Array;
}

export interface PreparedDocument {
  /** SHA-256 of what was sent. */
  readonly contentHash: Uint8Array;
  /** UTF-16 code units. */
  readonly characters: number;
  /** The text in pages, each with the offset of its first code unit. */
  readonly pages: readonly { readonly start: number; readonly text: string }[];
  readonly passages: readonly PreparedPassage[];
  readonly segments: readonly SegmentBytes[];
  /** One `builtin/lexical` vector a passage, one after the other; all zeros for a passage without words. */
  readonly vectors: Float32Array;
}

export interface SegmentBytes {
  readonly passages: number;
  readonly bytes: Uint8Array;
}

/** Segments that take the place of others. */
export interface SegmentChange {
  readonly removed: readonly number[];
  readonly added: readonly SegmentBytes[];
}

export interface WithoutRequest {
  readonly scopeId: number;
  readonly document: number;
}

export interface CompactRequest {
  readonly scopeId: number;
  /** No document has come for a while. */
  readonly isQuiet: boolean;
}

export interface VectorsRequest {
  readonly scopeId: number;
  readonly keys: readonly number[];
}

/** What a worker can be asked, and what it answers. */
export interface VaultJobs {
  search: { request: SearchRequest; answer: SearchAnswer };
  prepare: { request: PrepareRequest; answer: PreparedDocument };
  without: { request: WithoutRequest; answer: SegmentChange };
  compact: { request: CompactRequest; answer: SegmentChange };
  /** `builtin/lexical` vectors as the index holds them; null for a passage without words, undefined where it is not there. */
  vectors: { request: VectorsRequest; answer: readonly (Float32Array | null | undefined)[] };
}

export type JobName = keyof VaultJobs;

/** The first message a worker gets. */
export interface WorkerSetup {
  readonly database: string;
  /** Path of sqlite-vec, or null where this platform has none. */
  readonly extension: string | null;
  /** Bytes of the index that it may keep in memory. */
  readonly cacheBytes: number;
}

/** One job, with the request that belongs to its name. */
export type JobMessage = {
  [Name in JobName]: {
    readonly id: number;
    readonly job: Name;
    readonly request: VaultJobs[Name]["request"];
  };
}[JobName];

export type JobReply =
  | { readonly id: number; readonly ok: true; readonly answer: unknown }
  | { readonly id: number; readonly ok: false; readonly failure: JobFailure };

/** Asks a worker to close what it has open, since it is not needed any more; it says the same when that is done. */
export const LEAVE = "leave";
