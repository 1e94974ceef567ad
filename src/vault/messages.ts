import type { Boundary } from "../access/memory-scope.ts";
import type { JobFailure } from "../reading/job-errors.ts";
import type { SnapshotOptions } from "../store/postgres/snapshots.ts";

export type { JobFailure };

/**
 * Requests and answers of the vault's workers. They are sent with `postMessage`, so they contain only plain values
 * and bytes.
 */

export type SearchMode = "hybrid" | "keyword" | "vector";

/** A metadata value, as compared by a filter. */
export type MetadataValue = string | number | boolean;
export type Metadata = Readonly<Record<string, MetadataValue>>;

/** The space to search, and the question's own vector if a model computed it. */
export interface VectorQuestion {
  readonly space: number;
  /** Null for `builtin/lexical`, whose vector the worker computes itself. */
  readonly vector: Float32Array | null;
}

export interface SearchRequest {
  readonly workspaceId: number;
  readonly boundary: Boundary;
  readonly query: string;
  readonly topK: number;
  readonly mode: SearchMode;
  /** Hashes of the names and values that a document MUST have, all of them. */
  readonly filter: readonly Uint8Array[];
  /** Maximum number of characters of all passages together. */
  readonly maxCharacters: number | null;
  /** After this many milliseconds, a document's score is halved. */
  readonly recency: { readonly halfLifeMs: number; readonly now: number } | null;
  readonly explain: boolean;
  readonly vectors: VectorQuestion | null;
}

/** A passage's rank in one part of the search, from 1. Null if that part did not find it. */
export interface PartExplained {
  readonly rank: number | null;
  readonly score: number;
}

export interface ScoreExplanation {
  readonly keyword: PartExplained | null;
  readonly vector: PartExplained | null;
  /** The factor applied for the document's age. */
  readonly recency: number | null;
  /** Near-duplicates that this passage represents. */
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
  readonly explain: ScoreExplanation | null;
}

export interface SearchAnswer {
  readonly passages: readonly FoundPassage[];
  /** The mode actually used. */
  readonly mode: SearchMode;
  readonly corrected: Readonly<Record<string, readonly string[]>>;
}

/** A document to be read, cut into passages and indexed. */
export interface PrepareRequest {
  /** The key of the new document. */
  readonly document: number;
  readonly title: string;
  readonly content:
    | { readonly kind: "text"; readonly text: string; readonly type: string }
    | { readonly kind: "base64"; readonly data: string; readonly type: string };
}

export interface PreparedPassage {
  readonly start: number;
  readonly end: number;
  /** SHA-256 of title and text, first 16 bytes. Equal passages are embedded once. */
  readonly hash: Uint8Array;
}

export interface PreparedDocument {
  /** SHA-256 of the content as sent. */
  readonly contentHash: Uint8Array;
  /** UTF-16 code units. */
  readonly characters: number;
  /** The text in pages, each with the offset of its first code unit. */
  readonly pages: readonly { readonly start: number; readonly text: string }[];
  readonly passages: readonly PreparedPassage[];
  readonly segments: readonly SegmentBytes[];
  /** The `builtin/lexical` vectors of all passages in sequence; all zeros for a passage without words. */
  readonly vectors: Float32Array;
}

export interface SegmentBytes {
  readonly passages: number;
  readonly bytes: Uint8Array;
}

/** Segments that replace others. */
export interface SegmentChange {
  readonly removed: readonly number[];
  readonly added: readonly SegmentBytes[];
}

export interface RemoveDocumentRequest {
  readonly scopeId: number;
  readonly document: number;
  /** The space whose copies are meant; null for the segments with words. */
  readonly space: number | null;
}

export interface CompactRequest {
  readonly scopeId: number;
  /** See `RemoveDocumentRequest`. */
  readonly space: number | null;
  /** Whether no document has been added for a while. */
  readonly isQuiet: boolean;
}

export interface VectorsRequest {
  readonly scopeId: number;
  readonly keys: readonly number[];
}

/** The jobs of a worker, with their requests and answers. */
export interface VaultJobs {
  search: { request: SearchRequest; answer: SearchAnswer };
  prepare: { request: PrepareRequest; answer: PreparedDocument };
  without: { request: RemoveDocumentRequest; answer: SegmentChange };
  compact: { request: CompactRequest; answer: SegmentChange };
  /**
   * `builtin/lexical` vectors from the index. Null for a passage without words, undefined if the index does not
   * contain it.
   */
  vectors: { request: VectorsRequest; answer: readonly (Float32Array | null | undefined)[] };
}

export type JobName = keyof VaultJobs;

/** The first message to a worker. */
export interface WorkerSetup {
  /** Null for a thread that only reads documents. */
  readonly index: IndexLocation | null;
}

/** Where the threads read the index. */
export type IndexLocation =
  | {
      readonly engine: "sqlite";
      /** The database file. */
      readonly database: string;
      /** The path of sqlite-vec. Null if this platform has none. */
      readonly extension: string | null;
    }
  | ({ readonly engine: "postgres" } & SnapshotOptions);

/** A segment in memory that threads share. */
export interface SharedSegment {
  readonly id: number;
  readonly buffer: SharedArrayBuffer;
}

/** What a worker did with its cached segments since its last report. */
export interface CacheReport {
  /** Keys of the segments that it used. */
  readonly used: Float64Array;
  /** The segments that it read from the store, because they were not in its cache. */
  readonly read: readonly SharedSegment[];
}

/** How a worker MUST change its cache: drop the first, then add the others, also in place of its own copies. */
export interface CacheUpdate {
  readonly dropped: readonly number[];
  readonly added: readonly SharedSegment[];
}

/** Tells a worker to change its cache. It does not answer. */
export interface CacheMessage {
  readonly job: "cache";
  readonly update: CacheUpdate;
}

/** A job with the request for its name. */
export type JobMessage = {
  [Name in JobName]: {
    readonly id: number;
    readonly job: Name;
    readonly request: VaultJobs[Name]["request"];
  };
}[JobName];

export type JobReply = JobOutcome & {
  readonly id: number;
  /** Null if the worker has not opened the index. */
  readonly cache: CacheReport | null;
};

export type JobOutcome =
  | { readonly ok: true; readonly answer: unknown }
  | { readonly ok: false; readonly failure: JobFailure };

/** Tells an idle worker to close what it has open. It answers with the same message when done. */
export const LEAVE = "leave";
