import { JobOverLimit } from "./job-errors.ts";
import { JobQueue, queueClosed } from "./job-queue.ts";
import type { ReadingProtocol } from "./protocol.ts";
import { ReaderGone, ReaderProcess } from "./reader.ts";
import type { Turn, TurnLimits } from "./workspace-round-robin.ts";

export interface ReaderPoolOptions<Request, Result> {
  readonly protocol: ReadingProtocol<Request, Result>;
  /** The command that starts a process. */
  readonly command: readonly string[];
  /** Maximum number of concurrent processes. */
  readonly most: number;
  /** The time limit for a document. */
  timeFor(request: Request): number;
  /** Limits on waiting documents. */
  readonly waiting: TurnLimits;
  /** How long an idle process is kept. */
  readonly idleMs: number;
  /** Called for each document that could not be read, with the reason. */
  failed(workspaceId: number, error: unknown): void;
}

/** How long a workspace counts as costly after one of its documents was abandoned. */
const COSTLY_MS = 600_000;
/** Maximum number of workspaces remembered as costly. Beyond that, the oldest is forgotten. */
const MOST_COSTLY = 1_000;

/**
 * The processes that read documents. Workspaces take turns, and one workspace never uses all processes, so a
 * workspace with slow documents delays only itself. Workspaces with a recently abandoned document count as one for
 * this, and come after all others, so they delay only each other.
 */
export class ReaderPool<Request, Result> {
  readonly #options: ReaderPoolOptions<Request, Result>;
  readonly #queue: JobQueue<Request, Result>;
  readonly #readers = new Set<ReaderProcess<Request, Result>>();
  /** Idle processes, each with the timer that ends it. */
  readonly #idle = new Map<ReaderProcess<Request, Result>, ReturnType<typeof setTimeout>>();
  /** Number of documents being read for each workspace. */
  readonly #busy = new Map<number, number>();
  /** When each costly workspace became costly. */
  readonly #costly = new Map<number, number>();
  #running = 0;
  #isStopped = false;

  constructor(options: ReaderPoolOptions<Request, Result>) {
    this.#options = options;
    this.#queue = new JobQueue(options.waiting, () => this.#next());
  }

  /** @throws see `ReaderProcess.read`; Problem 429 `queue_full`, StoreUnavailable once stopped */
  do(request: Request, turn: Turn): Promise<Result> {
    return this.#queue.do(request, turn);
  }

  /** Ends all processes and waits for them. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#queue.close();
    for (const timer of this.#idle.values()) clearTimeout(timer);
    this.#idle.clear();
    const readers = [...this.#readers];
    for (const reader of readers) reader.end(queueClosed());
    await Promise.all(readers.map((reader) => reader.ended()));
  }

  #next(): void {
    while (!this.#isStopped && this.#running < this.#options.most) {
      const job =
        this.#queue.take((workspaceId) => !this.#isCostly(workspaceId) && this.#mayRead(workspaceId)) ??
        this.#queue.take((workspaceId) => this.#mayRead(workspaceId));
      if (!job) return;
      this.#running += 1;
      this.#count(job.workspaceId, 1);
      void this.#read(job.request)
        .then(
          (result) => job.resolve(result),
          (error) => {
            if (error instanceof JobOverLimit) this.#noteCostly(job.workspaceId);
            this.#options.failed(job.workspaceId, error);
            job.reject(error);
          },
        )
        .finally(() => {
          this.#running -= 1;
          this.#count(job.workspaceId, -1);
          this.#next();
        });
    }
  }

  #mayRead(workspaceId: number): boolean {
    const share = Math.max(1, this.#options.most - 1);
    if ((this.#busy.get(workspaceId) ?? 0) >= share) return false;
    return !this.#isCostly(workspaceId) || this.#costlyRunning() < share;
  }

  #costlyRunning(): number {
    let running = 0;
    for (const [workspaceId, count] of this.#busy) if (this.#isCostly(workspaceId)) running += count;
    return running;
  }

  #isCostly(workspaceId: number): boolean {
    const since = this.#costly.get(workspaceId);
    return since !== undefined && performance.now() - since < COSTLY_MS;
  }

  #noteCostly(workspaceId: number): void {
    this.#costly.delete(workspaceId);
    this.#costly.set(workspaceId, performance.now());
    if (this.#costly.size <= MOST_COSTLY) return;
    const [oldest] = this.#costly.keys();
    if (oldest !== undefined) this.#costly.delete(oldest);
  }

  #count(workspaceId: number, change: 1 | -1): void {
    const count = (this.#busy.get(workspaceId) ?? 0) + change;
    if (count === 0) this.#busy.delete(workspaceId);
    else this.#busy.set(workspaceId, count);
  }

  async #read(request: Request): Promise<Result> {
    const idle = this.#takeIdle();
    if (!idle) return this.#readWith(this.#start(), request);
    try {
      return await this.#readWith(idle, request);
    } catch (error) {
      if (!(error instanceof ReaderGone)) throw error;
    }
    // The process may have been killed while it was idle. A document that also ends a new process is at fault.
    if (this.#isStopped) throw queueClosed();
    return this.#readWith(this.#start(), request);
  }

  async #readWith(reader: ReaderProcess<Request, Result>, request: Request): Promise<Result> {
    try {
      return await reader.read(request, this.#options.timeFor(request));
    } finally {
      this.#keep(reader);
    }
  }

  #takeIdle(): ReaderProcess<Request, Result> | undefined {
    for (const [reader, timer] of this.#idle) {
      clearTimeout(timer);
      this.#idle.delete(reader);
      if (reader.isUsable) return reader;
      this.#readers.delete(reader);
    }
    return undefined;
  }

  #start(): ReaderProcess<Request, Result> {
    const reader = new ReaderProcess(this.#options.command, this.#options.protocol);
    this.#readers.add(reader);
    return reader;
  }

  #keep(reader: ReaderProcess<Request, Result>): void {
    if (!reader.isUsable) {
      void reader.ended().then(() => this.#readers.delete(reader));
      return;
    }
    const timer = setTimeout(() => {
      this.#idle.delete(reader);
      reader.end();
      void reader.ended().then(() => this.#readers.delete(reader));
    }, this.#options.idleMs);
    timer.unref();
    this.#idle.set(reader, timer);
  }
}
