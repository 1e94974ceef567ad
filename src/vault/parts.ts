import type { Boundary } from "../access/memory-scope.ts";
import type { Clock } from "../base/clock.ts";
import type { Ids } from "../base/ids.ts";
import type { Locks } from "../base/locks.ts";
import type { Log } from "../base/log.ts";
import type { Signal } from "../base/signal.ts";
import type { Embedder } from "../models/embed/embedder.ts";
import type { Db, Tx } from "../store/db.ts";
import type { Forgetting } from "../store/forgetting.ts";
import type { DocumentReading } from "./reading/reading.ts";
import type { Claims } from "./rows/claims.ts";
import type { Hashes } from "./rows/hashes.ts";
import type { Spaces } from "./rows/spaces.ts";
import type { VectorStore } from "./rows/vector-store.ts";
import type { WorkerThreads } from "./worker-threads.ts";

/** A change of a document. A moved document is deleted at its old scope and written at the new one. */
export interface DocumentChange {
  readonly workspaceId: number;
  readonly id: string;
  readonly scope: string;
  readonly change: "written" | "deleted";
}

/** Dependencies shared by the vault's files; assembled in `vault.ts`. */
export interface VaultParts {
  readonly db: Db;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly forgetting: Forgetting;
  readonly spaces: Spaces;
  readonly vectors: VectorStore;
  readonly claims: Claims;
  readonly hashes: Hashes;
  /** Null: `builtin/lexical`, which the workers compute themselves. */
  readonly embedder: Embedder | null;
  /** Of workspaces: this node's own changes of segments need not race each other. */
  readonly locks: Locks;
  /** Emits each written or deleted document, once that is on disk. */
  readonly changed: Signal<DocumentChange>;
  /** Runs searches. */
  readonly searcher: WorkerThreads;
  /** Reads documents, with limits on time and memory. */
  readonly reading: Pick<DocumentReading, "prepare">;
  /** Merges segments, and rebuilds them without deleted documents. */
  readonly merger: WorkerThreads;
}

/**
 * Runs a call's writes in one transaction with its evidence. Each door supplies its own, so the vault need not know
 * about calls. `boundary` is the caller's boundary at that moment, which may have been narrowed since the call began.
 */
export type Commit = <T>(work: (tx: Tx, boundary: Boundary) => Promise<T>) => Promise<T>;
