import { JobQueue, vaultClosed } from "../job-queue.ts";
import type { PreparedDocument, PrepareRequest } from "../messages.ts";
import type { Turn, TurnLimits } from "../turns.ts";
import { DocumentReader, ReaderGone } from "./reader.ts";

export interface DocumentReadersOptions {
  /** The command that starts a process. */
  readonly command: readonly string[];
  /** The most concurrent processes. */
  readonly most: number;
  /** The time limit for a document. */
  timeFor(request: PrepareRequest): number;
  /** Limits on waiting documents. */
  readonly waiting: TurnLimits;
  /** How long an idle process is kept. */
  readonly idleMs: number;
  /** Called for each document that could not be read, with the reason. */
  failed(workspaceId: number, error: unknown): void;
}

/**
 * The processes that read documents. Workspaces take turns, and one process is always left to the others, so a
 * workspace with slow documents delays only itself.
 */
export class DocumentReaders {
  readonly #options: DocumentReadersOptions;
  readonly #queue: JobQueue<PrepareRequest, PreparedDocument>;
  readonly #readers = new Set<DocumentReader>();
  /** Idle processes, each with the timer that ends it. */
  readonly #idle = new Map<DocumentReader, ReturnType<typeof setTimeout>>();
  /** Number of documents being read for each workspace. */
  readonly #busy = new Map<number, number>();
  #running = 0;
  #isStopped = false;

  constructor(options: DocumentReadersOptions) {
    this.#options = options;
    this.#queue = new JobQueue(options.waiting, () => this.#next());
  }

  /** @throws see `DocumentReader.read`; Problem 429 `queue_full`; StoreUnavailable once stopped */
  prepare(request: PrepareRequest, turn: Turn): Promise<PreparedDocument> {
    return this.#queue.do(request, turn);
  }

  /** Ends all processes and waits for them. */
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
      const job = this.#queue.take((workspaceId) => this.#mayRead(workspaceId));
      if (!job) return;
      this.#running += 1;
      this.#count(job.workspaceId, 1);
      void this.#read(job.request)
        .then(
          (prepared) => job.resolve(prepared),
          (error) => {
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
    return (this.#busy.get(workspaceId) ?? 0) < share;
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
    // The process may have been killed while idle. A document that also ends a new process is at fault.
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
