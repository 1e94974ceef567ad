import { JobQueue, queueClosed } from "../reading/job-queue.ts";
import type { Turn, TurnLimits } from "../reading/workspace-round-robin.ts";
import type { JobName, VaultJobs } from "./messages.ts";
import { SegmentSharing } from "./segment-sharing.ts";
import { type Order, type ThreadOptions, WorkerThread } from "./worker-thread.ts";

export interface WorkerThreadsOptions extends ThreadOptions {
  /** Maximum number of threads. Another is started when all others have a job. */
  readonly threads: number;
  /**
   * Maximum number of jobs sent to a thread before it has answered the first of them. They run before any later job,
   * so a workspace may have to wait for this many even when its turn has come.
   */
  readonly atOnce: number;
  /** Limits on waiting jobs. Beyond them, calls are refused. */
  readonly waiting: TurnLimits;
  /** How many bytes of the index the threads may cache together. */
  readonly cacheBytes: number;
}

/** Threads for one kind of the vault's heavy work, with the queue of their jobs. */
export class WorkerThreads {
  readonly #atOnce: number;
  readonly #queue: JobQueue<Order, unknown>;
  readonly #threads: readonly WorkerThread[];
  #stopped = false;

  constructor(options: WorkerThreadsOptions) {
    this.#atOnce = options.atOnce;
    this.#queue = new JobQueue(options.waiting, () => this.#next());
    const group = {
      sharing: new SegmentSharing<WorkerThread>(options.cacheBytes),
      hasRoom: () => this.#next(),
      isServed: () => this.#threads.some((thread) => thread.isStarted),
      putBack: this.#queue.putBack.bind(this.#queue),
    };
    this.#threads = Array.from({ length: options.threads }, () => new WorkerThread(options, group));
  }

  /** @throws JobRefused; JobOverLimit; StoreUnavailable; Problem 429 `queue_full`; Error for a bug */
  do<Name extends JobName>(
    name: Name,
    request: VaultJobs[Name]["request"],
    turn: Turn,
  ): Promise<VaultJobs[Name]["answer"]> {
    return this.#queue.do({ name, request }, turn) as Promise<VaultJobs[Name]["answer"]>;
  }

  /** Ends the threads, and resolves once they are gone. Running and waiting jobs are refused. */
  async stop(): Promise<void> {
    this.#stopped = true;
    const gone = this.#threads.map((thread) => thread.stop(queueClosed()));
    this.#queue.close();
    await Promise.all(gone);
  }

  #next(): void {
    if (this.#stopped) return;
    for (;;) {
      const thread = this.#leastBusy();
      const job = thread && this.#queue.take();
      if (!job) break;
      thread.send(job);
    }
    for (const thread of this.#threads) thread.changeCache();
  }

  /** Undefined if no thread may be sent another job. The first of equals, so the others are started only if needed. */
  #leastBusy(): WorkerThread | undefined {
    let least: WorkerThread | undefined;
    for (const thread of this.#threads) {
      if (thread.isRefused && this.#threads.some((other) => other.isStarted)) continue;
      if (thread.running < (least?.running ?? this.#atOnce)) least = thread;
    }
    return least;
  }
}
