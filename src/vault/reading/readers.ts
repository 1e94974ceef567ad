import { JobOverLimit } from "../job-errors.ts";
import { JobQueue, vaultClosed } from "../job-queue.ts";
import type { PreparedDocument, PrepareRequest } from "../messages.ts";
import type { Turn, TurnLimits } from "../workspace-round-robin.ts";
import { DocumentReader, ReaderGone } from "./reader.ts";

export interface DocumentReadersOptions {
  /** What a process is started with. */
  readonly command: readonly string[];
  /** Processes at once. */
  readonly most: number;
  /** How long a document may be read. */
  timeFor(request: PrepareRequest): number;
  /** Documents that may wait. */
  readonly waiting: TurnLimits;
  /** How long a process without a document is kept. */
  readonly idleMs: number;
  /** Called for each document that could not be read, with the reason. */
  failed(workspaceId: number, error: unknown): void;
}

/** How long a workspace counts as costly after one of its documents was given up. */
const COSTLY_MS = 600_000;
/** Workspaces that are remembered as costly; the one that became so first goes. */
const MOST_COSTLY = 1_000;

/**
 * The processes that read documents. Workspaces take turns, and of several processes one is always left to the others:
 * a workspace whose documents take all the time that they may holds up nobody but itself. Workspaces of which a document was
 * given up lately count as one for this, and come after all others: several of them together hold up only each other.
 */
export class DocumentReaders {
  readonly #options: DocumentReadersOptions;
  readonly #queue: JobQueue<PrepareRequest, PreparedDocument>;
  readonly #readers = new Set<DocumentReader>();
  /** Processes without a document, each with the timer that ends it. */
  readonly #idle = new Map<DocumentReader, ReturnType<typeof setTimeout>>();
  /** Documents of each workspace that are being read. */
  readonly #busy = new Map<number, number>();
  /** When each costly workspace became so. */
  readonly #costly = new Map<number, number>();
  #running = 0;
  #isStopped = false;

  constructor(options: DocumentReadersOptions) {
    this.#options = options;
    this.#queue = new JobQueue(options.waiting, () => this.#next());
  }

  /** @throws see `DocumentReader.read`; Problem 429 `queue_full`, StoreUnavailable once stopped */
  prepare(request: PrepareRequest, turn: Turn): Promise<PreparedDocument> {
    return this.#queue.do(request, turn);
  }

  /** Ends all processes, and resolves when they are gone. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#queue.close();
    for (const timer of this.#idle.values()) clearTimeout(timer);
    this.#idle.clear();
    const readers = [...this.#readers];
    for (const reader of readers) reader.end(vaultClosed());
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
          (prepared) => job.resolve(prepared),
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

  async #read(request: PrepareRequest): Promise<PreparedDocument> {
    const idle = this.#takeIdle();
    if (!idle) return this.#readWith(this.#start(), request);
    try {
      return await this.#readWith(idle, request);
    } catch (error) {
      if (!(error instanceof ReaderGone)) throw error;
    }
    // The process may have been killed while it was idle. A document that ends a new process as well is at fault.
    if (this.#isStopped) throw vaultClosed();
    return this.#readWith(this.#start(), request);
  }

  async #readWith(reader: DocumentReader, request: PrepareRequest): Promise<PreparedDocument> {
    try {
      return await reader.read(request, this.#options.timeFor(request));
    } finally {
      this.#keep(reader);
    }
  }

  #takeIdle(): DocumentReader | undefined {
    for (const [reader, timer] of this.#idle) {
      clearTimeout(timer);
      this.#idle.delete(reader);
      if (reader.isUsable) return reader;
      this.#readers.delete(reader);
    }
    return undefined;
  }

  #start(): DocumentReader {
    const reader = new DocumentReader(this.#options.command);
    this.#readers.add(reader);
    return reader;
  }

  #keep(reader: DocumentReader): void {
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
