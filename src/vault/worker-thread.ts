import { OutOfOpenFiles, startThread } from "../base/open-files/thread.ts";
import { errorOf, outOfOpenFiles, tookTooLong } from "../reading/job-errors.ts";
import type { Job } from "../reading/job-queue.ts";
import { type JobName, type JobReply, LEAVE, type WorkerSetup } from "./messages.ts";
import type { SegmentSharing } from "./segment-sharing.ts";

/** How long a thread may take to close its connection before it is terminated. */
const LEAVE_MS = 1_000;

/** How long a thread that could not be started is not tried again while another one runs. */
const RETRY_MS = 5_000;

/** The error of a thread that cannot read its program because connections took the last descriptors. */
const OUT_OF_FILES = /^\w*:? ?(?:EMFILE|ENFILE)\b/;

export interface ThreadOptions {
  readonly program: URL;
  readonly setup: WorkerSetup;
  /**
   * The time limit for one job. The worker runs jobs in sequence, so the time starts when the previous job is done.
   */
  readonly timeoutMs: number;
  /** After this long without a job, the thread is ended to release its memory. The next job starts another. */
  readonly idleMs: number;
}

export interface Order {
  readonly name: JobName;
  readonly request: unknown;
}

export type OrderedJob = Job<Order, unknown>;

/** The group that a thread belongs to. */
export interface ThreadGroup {
  readonly sharing: SegmentSharing<WorkerThread>;
  /** The thread has settled a job, or has ended. */
  hasRoom(): void;
  /** Whether any thread of the group is started. */
  isServed(): boolean;
  /** Takes back a job that the thread did not start. */
  putBack(job: OrderedJob): void;
}

/** One thread, with the jobs that it has been sent. Started by its first job, and restarted if it fails. */
export class WorkerThread {
  readonly #options: ThreadOptions;
  readonly #group: ThreadGroup;
  #worker: Worker | null = null;
  #nextId = 1;
  /** In the order in which the worker runs them. */
  readonly #running = new Map<number, OrderedJob>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** In milliseconds of `performance.now()`. */
  #refusedUntil = 0;
  #idle: ReturnType<typeof setTimeout> | undefined;

  constructor(options: ThreadOptions, group: ThreadGroup) {
    this.#options = options;
    this.#group = group;
  }

  get isStarted(): boolean {
    return this.#worker !== null;
  }

  /** Whether it could not be started in the last seconds. */
  get isRefused(): boolean {
    return performance.now() < this.#refusedUntil;
  }

  /** The number of jobs that it has not answered. */
  get running(): number {
    return this.#running.size;
  }

  /** Runs the job after those that it has. If it cannot be started now, another thread runs it, or it is refused. */
  send(job: OrderedJob): void {
    const worker = this.#openFor(job);
    if (!worker) return;
    const id = this.#nextId++;
    clearTimeout(this.#idle);
    this.#running.set(id, job);
    this.#changeCache(worker);
    worker.postMessage({ id, job: job.request.name, request: job.request.request });
    this.#startTimer();
  }

  /** Changes the cache of an idle thread. A busy one is told before its next job, so that no changes pile up. */
  changeCache(): void {
    if (this.#worker && this.#running.size === 0) this.#changeCache(this.#worker);
  }

  /** Ends the thread and fails every job it was running. */
  end(error: Error): void {
    const jobs = [...this.#running.values()];
    this.#close();
    for (const job of jobs) job.reject(error);
    this.#group.hasRoom();
  }

  /** Ends the thread and fails every job it was running. An idle one closes its connection first: see `#leave`. */
  async stop(error: Error): Promise<void> {
    if (this.#running.size > 0) this.end(error);
    else await this.#leave();
  }

  #changeCache(worker: Worker): void {
    const update = this.#group.sharing.take(this);
    if (update) worker.postMessage({ job: "cache", update });
  }

  /** Null if the thread cannot be started now. */
  #openFor(job: OrderedJob): Worker | null {
    try {
      return this.#open();
    } catch (error) {
      if (!(error instanceof OutOfOpenFiles)) job.reject(error);
      else this.#refuse(job);
      return null;
    }
  }

  #refuse(job: OrderedJob): void {
    this.#refusedUntil = performance.now() + RETRY_MS;
    if (this.#group.isServed()) this.#group.putBack(job);
    else job.reject(outOfOpenFiles());
  }

  #open(): Worker {
    if (this.#worker) return this.#worker;
    const worker = startThread(this.#options.program);
    this.#worker = worker;
    this.#group.sharing.join(this);
    const failed = (why: string) => {
      if (this.#worker !== worker) return;
      this.end(OUT_OF_FILES.test(why) ? outOfOpenFiles() : new Error(`a vault worker failed: ${why}`));
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
    if (reply.cache) this.#group.sharing.report(reply.cache);
    if (reply.ok) job.resolve(reply.answer);
    else job.reject(errorOf(reply.failure));
    this.#group.hasRoom();
    if (this.#running.size > 0) {
      this.#startTimer();
      return;
    }
    this.#idle = setTimeout(() => void this.#leave(), this.#options.idleMs);
    this.#idle.unref();
  }

  /**
   * Ends an idle thread after it has closed its connection. If the connection ended with the thread, the writer would
   * see a foreign commit (observed with Bun 1.4.5: `PRAGMA data_version` changes).
   */
  async #leave(): Promise<void> {
    const worker = this.#worker;
    this.#worker = null;
    clearTimeout(this.#idle);
    if (!worker) return;
    this.#group.sharing.leave(this);
    const { promise: left, resolve } = Promise.withResolvers<void>();
    const end = () => {
      clearTimeout(late);
      worker.terminate();
      resolve();
    };
    const late = setTimeout(end, LEAVE_MS);
    late.unref();
    worker.onmessage = end;
    worker.postMessage(LEAVE);
    await left;
  }

  #startTimer(): void {
    this.#timer ??= setTimeout(() => this.#overdue(), this.#options.timeoutMs);
  }

  /** Ends a thread that does not answer, since it cannot be asked to stop. Its other jobs are run again. */
  #overdue(): void {
    const [oldest, ...others] = this.#running.values();
    this.#close();
    for (const job of others.reverse()) this.#group.putBack(job);
    oldest?.reject(tookTooLong(this.#options.timeoutMs));
    this.#group.hasRoom();
  }

  #close(): void {
    const worker = this.#worker;
    this.#worker = null;
    this.#running.clear();
    this.#stopTimer();
    clearTimeout(this.#idle);
    this.#group.sharing.leave(this);
    worker?.terminate();
  }

  #stopTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
