import { Problem } from "../base/errors.ts";
import { openFilesReserve } from "../base/open-files/reserve.ts";
import { OutOfOpenFiles, startThread } from "../base/open-files/thread.ts";
import { StoreUnavailable } from "../store/db.ts";
import {
  type JobFailure,
  type JobName,
  type JobReply,
  LEAVE,
  type VaultJobs,
  type WorkerSetup,
} from "./messages.ts";

/** How long a thread may take to close its connection before it is ended all the same. */
const LEAVE_MS = 1_000;

/** With fewer left than this, a database that cannot be opened most likely lacked them. */
const FEW_FILES = 32;
/** What a thread says that cannot read its program, since connections took the last descriptors. */
const OUT_OF_FILES = /^\w*:? ?(?:EMFILE|ENFILE)\b/;

/** A job that the user can mend: which field is at fault, and why. */
export class JobRefused extends Error {
  override readonly name = "JobRefused";
  readonly field: string;

  constructor(field: string, message: string) {
    super(message);
    this.field = field;
  }
}

/** The worker gave no answer for longer than a job may take, and was ended. */
export class JobTimeout extends Error {
  override readonly name = "JobTimeout";
}

export interface WorkerThreadOptions {
  readonly program: URL;
  readonly setup: WorkerSetup;
  /** How long one job may take. The worker does them in turn: the time begins when the one before is done. */
  readonly timeoutMs: number;
  /** Jobs at the worker at once. One, where a job that goes wrong must harm itself alone. */
  readonly atOnce: number;
  /** Jobs that may wait; past that a call is refused. */
  readonly waiting: number;
  /** After so long without a job the thread is ended, and gives back what memory it took; the next job starts another. */
  readonly idleMs: number;
}

interface Job {
  readonly name: JobName;
  readonly request: unknown;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** One thread that does the vault's heavy work. Started at its first job, started anew when it fails. */
export class WorkerThread {
  readonly #options: WorkerThreadOptions;
  #worker: Worker | null = null;
  #nextId = 1;
  /** In the order in which the worker does them. */
  readonly #running = new Map<number, Job>();
  readonly #waiting: Job[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #idle: ReturnType<typeof setTimeout> | undefined;
  #stopped = false;

  constructor(options: WorkerThreadOptions) {
    this.#options = options;
  }

  /**
   * @throws JobRefused, JobTimeout, StoreUnavailable, Problem 429 `rate_limited` where too many wait, and Error for a fault
   * of the program
   */
  do<Name extends JobName>(
    name: Name,
    request: VaultJobs[Name]["request"],
  ): Promise<VaultJobs[Name]["answer"]> {
    return new Promise((resolve, reject) => {
      if (this.#stopped) {
        reject(closed());
        return;
      }
      if (this.#waiting.length >= this.#options.waiting) {
        reject(tooMuch());
        return;
      }
      this.#waiting.push({ name, request, resolve: resolve as Job["resolve"], reject });
      this.#next();
    });
  }

  /** Ends the thread. What it was asked for, and what waits, is refused. */
  stop(): void {
    this.#stopped = true;
    this.#end(closed());
    for (const job of this.#waiting.splice(0)) job.reject(closed());
  }

  #next(): void {
    while (this.#running.size < this.#options.atOnce) {
      const job = this.#waiting.shift();
      if (!job) break;
      const worker = this.#openFor(job);
      if (!worker) continue;
      const id = this.#nextId++;
      clearTimeout(this.#idle);
      this.#running.set(id, job);
      worker.postMessage({ id, job: job.name, request: job.request });
    }
    if (this.#timer === undefined && this.#running.size > 0) {
      this.#timer = setTimeout(() => this.#overdue(), this.#options.timeoutMs);
    }
  }

  /** Null if no thread can be started now: the job is refused. */
  #openFor(job: Job): Worker | null {
    try {
      return this.#open();
    } catch (error) {
      job.reject(error instanceof OutOfOpenFiles ? outOfFiles() : error);
      return null;
    }
  }

  #open(): Worker {
    if (this.#worker) return this.#worker;
    const worker = startThread(this.#options.program);
    this.#worker = worker;
    const failed = (why: string) => {
      if (this.#worker !== worker) return;
      this.#end(OUT_OF_FILES.test(why) ? outOfFiles() : new Error(`a vault worker failed: ${why}`));
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
   * Lets a thread go that has nothing to do. It closes its connection first: one that is torn down with its thread looks to
   * the writer as if somebody else had written (seen with Bun 1.4.5: `PRAGMA data_version` moves).
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

  /** A thread that does not answer cannot be asked to stop: it is ended, and what else it was to do is done again. */
  #overdue(): void {
    const [oldest, ...others] = this.#running.values();
    this.#close();
    this.#waiting.unshift(...others);
    oldest?.reject(new JobTimeout(`took longer than ${this.#options.timeoutMs / 1000} seconds`));
    this.#next();
  }

  /** Ends the thread and everything that it was doing. */
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

function closed(): StoreUnavailable {
  return new StoreUnavailable("the vault is closed");
}

/** What a caller is told where a queue of the vault is full. */
export function tooMuch(): Problem {
  return new Problem("rate_limited", "The vault has as much waiting as it can hold.", {
    headers: { "Retry-After": "1" },
  });
}

function outOfFiles(): Problem {
  return new Problem("rate_limited", "The server has too many connections open to begin this now.", {
    headers: { "Retry-After": "1" },
  });
}

function errorOf({ message, field, isStore }: JobFailure): Error {
  if (field !== null) return new JobRefused(field, message);
  if (isStore && !openFilesReserve.hasRoom(FEW_FILES)) return outOfFiles();
  return isStore ? new StoreUnavailable(message) : new Error(message);
}
