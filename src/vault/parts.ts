import type { Boundary } from "../access/memory-scope.ts";
import type { Clock } from "../base/clock.ts";
import type { Ids } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { Embedder } from "../models/embed/embedder.ts";
import type { Db, Tx } from "../store/db.ts";
import type { Forgetting } from "../store/forgetting.ts";
import type { Locks } from "./locks.ts";
import type { DocumentReading } from "./reading/reading.ts";
import type { Hashes } from "./rows/hashes.ts";
import type { Spaces } from "./rows/spaces.ts";
import type { WorkerThread } from "./worker-thread.ts";

/** What has become of a document. One that was moved is deleted where it was, and written where it is. */
export interface DocumentChange {
  readonly workspaceId: number;
  readonly id: string;
  readonly scope: string;
  readonly change: "written" | "deleted";
}

/** What the vault's own files share; put together in `vault.ts`. */
export interface VaultParts {
  readonly db: Db;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly forgetting: Forgetting;
  readonly spaces: Spaces;
  readonly hashes: Hashes;
  /** Null: `builtin/lexical`, which the workers make themselves. */
  readonly embedder: Embedder | null;
  readonly locks: Locks;
  /** Told of each document that was written or deleted, once that is on disk. */
  documentChanged(change: DocumentChange): void;
  /** Searches. */
  readonly searcher: WorkerThread;
  /** Reads documents, within bounds of time and memory. */
  readonly reading: Pick<DocumentReading, "prepare">;
  /** Merges segments, and makes them anew without a document. */
  readonly merger: WorkerThread;
}

/**
 * Does what a call writes, in one transaction with its evidence. A door brings its own, so that the vault knows nothing of
 * calls. `boundary` is how far the caller may write at that very moment: it may have been narrowed since the call began.
 */
export type Commit = <T>(work: (tx: Tx, boundary: Boundary) => Promise<T>) => Promise<T>;
