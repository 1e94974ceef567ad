import { OutOfOpenFiles, startThread } from "../base/open-files/thread.ts";
import { errorOf, outOfOpenFiles, tookTooLong } from "../reading/job-errors.ts";
import { type Job, JobQueue, queueClosed } from "../reading/job-queue.ts";
import type { Turn, TurnLimits } from "../reading/workspace-round-robin.ts";
import { type JobName, type JobReply, LEAVE, type VaultJobs, type WorkerSetup } from "./messages.ts";

/** How long a thread may take to close its connection before it is terminated. */
const LEAVE_MS = 1_000;

/** The error of a thread that cannot read its program because connections took the last descriptors. */
const OUT_OF_FILES = /^\w*:? ?(?:EMFILE|ENFILE)\b/;

export interface WorkerThreadOptions {
  readonly program: URL;
  readonly setup: WorkerSetup;
  /**
   * The time limit for one job. The worker runs jobs in sequence, so the time starts when the previous job is done.
   */
  readonly timeoutMs: number;
  /**
   * Maximum number of jobs sent to the worker before it has answered the first of them. They run before any later
   * job, so a workspace may have to wait for this many even when its turn has come.
   */
  readonly atOnce: number;
  /** Limits on waiting jobs. Beyond them, calls are refused. */
  readonly waiting: TurnLimits;
  /** After this long without a job, the thread is ended to release its memory. The next job starts another. */
  readonly idleMs: number;
}

interface Order {
  readonly name: JobName;
  readonly request: unknown;
}

/** A thread for the vault's heavy work. Started by its first job, and restarted if it fails. */
export class WorkerThread {
  readonly #options: WorkerThreadOptions;
  #worker: Worker | null = null;
  #nextId = 1;
  /** In the order in which the worker runs them. */
  readonly #running = new Map<number, Job<Order, unknown>>();
  readonly #queue: JobQueue<Order, unknown>;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #idle: ReturnType<typeof setTimeout> | undefined;
  #stopped = false;

  constructor(options: WorkerThreadOptions) {
    this.#options = options;
    this.#queue = new JobQueue(options.waiting, () => this.#next());
  }

  /** @throws JobRefused; JobOverLimit; StoreUnavailable; Problem 429 `queue_full`; Error for a bug */
  do<Name extends JobName>(
    name: Name,
    request: VaultJobs[Name]["request"],
    turn: Turn,
  ): Promise<VaultJobs[Name]["answer"]> {
    return this.#queue.do({ name, request }, turn) as Promise<VaultJobs[Name]["answer"]>;
  }

  /** Ends the thread. Running and waiting jobs are refused. */
  stop(): void {
    this.#stopped = true;
    this.#end(queueClosed());
    this.#queue.close();
  }

  #next(): void {
    while (this.#running.size < this.#options.atOnce) {
      const job = this.#queue.take();
      if (!job) break;
      const worker = this.#openFor(job);
      if (!worker) continue;
      const id = this.#nextId++;
      clearTimeout(this.#idle);
      this.#running.set(id, job);
      worker.postMessage({ id, job: job.request.name, request: job.request.request });
    }
    if (this.#timer === undefined && this.#running.size > 0) {
      this.#timer = setTimeout(() => this.#overdue(), this.#options.timeoutMs);
    }
  }

  /** Null if no thread can be started now. The job is refused then. */
  #openFor(job: Job<Order, unknown>): Worker | null {
    try {
      return this.#open();
    } catch (error) {
      job.reject(error instanceof OutOfOpenFiles ? outOfOpenFiles() : error);
      return null;
    }
  }

  #open(): Worker {
    if (this.#worker) return this.#worker;
    const worker = startThread(this.#options.program);
    this.#worker = worker;
    const failed = (why: string) => {
      if (this.#worker !== worker) return;
      this.#end(OUT_OF_FILES.test(why) ? outOfOpenFiles() : new Error(`a vault worker failed: ${why}`));
    };
    worker.onmessage = (message: MessageEvent<JobReply>) => {
      if (this.#worker === worker) this.#settle(message.data);
    };
    worker.onerror = (event) => {
      event.preventDefault();
      failed(event.message);
    };
    worker.addEventListener("close", () => failed("it ended by itself"));
    worker.postMessage(this.#options.setup);
    return worker;
  }

  #settle(reply: JobReply): void {
    const job = this.#running.get(reply.id);
    if (!job) return;
    this.#running.delete(reply.id);
    this.#stopTimer();
    if (reply.ok) job.resolve(reply.answer);
    else job.reject(errorOf(reply.failure));
    this.#next();
    if (this.#running.size > 0) return;
    this.#idle = setTimeout(() => this.#leave(), this.#options.idleMs);
    this.#idle.unref();
  }

  /**
   * Ends an idle thread after it has closed its connection. If the connection ended with the thread, the writer would
   * see a foreign commit (observed with Bun 1.4.5: `PRAGMA data_version` changes).
   */
  #leave(): void {
    const worker = this.#worker;
    this.#worker = null;
    if (!worker) return;
    const end = () => {
      clearTimeout(late);
      worker.terminate();
    };
    const late = setTimeout(end, LEAVE_MS);
    late.unref();
    worker.onmessage = end;
    worker.postMessage(LEAVE);
  }

  /** Ends a thread that does not answer, since it cannot be asked to stop. Its other jobs are run again. */
  #overdue(): void {
    const [oldest, ...others] = this.#running.values();
    this.#close();
    for (const job of others.reverse()) this.#queue.putBack(job);
    oldest?.reject(tookTooLong(this.#options.timeoutMs));
    this.#next();
  }

  /** Ends the thread and fails every job it was running. */
  #end(error: Error): void {
    const jobs = [...this.#running.values()];
    this.#close();
    for (const job of jobs) job.reject(error);
    if (!this.#stopped) this.#next();
  }

  #close(): void {
    const worker = this.#worker;
    this.#worker = null;
    this.#running.clear();
    this.#stopTimer();
    clearTimeout(this.#idle);
    worker?.terminate();
  }

  #stopTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
