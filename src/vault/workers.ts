import { Problem } from "../base/errors.ts";
import { StoreUnavailable } from "../store/db.ts";
import type { JobFailure, JobName, JobReply, VaultJobs, WorkerSetup } from "./messages.ts";

/** A job that the user can mend: which field is at fault, and why. */
export class JobRefused extends Error {
  override readonly name = "JobRefused";
  readonly field: string;

  constructor(field: string, message: string) {
    super(message);
    this.field = field;
  }
}

/** A job took longer than it may; its worker was ended. */
export class JobTimeout extends Error {
  override readonly name = "JobTimeout";
}

export interface VaultWorkerOptions {
  readonly program: URL;
  readonly setup: WorkerSetup;
  /** How long one job may take, from when the worker gets it. */
  readonly timeoutMs: number;
  /** Jobs at the worker at once. One, where a job that goes wrong must harm itself alone. */
  readonly atOnce: number;
  /** Jobs that may wait; past that a call is refused. */
  readonly waiting: number;
}

interface Job {
  readonly name: JobName;
  readonly request: unknown;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
}

interface Running extends Job {
  readonly timer: ReturnType<typeof setTimeout>;
}

/** One thread that does the vault's heavy work. Started at its first job, started anew when it fails. */
export class VaultWorker {
  readonly #options: VaultWorkerOptions;
  #worker: Worker | null = null;
  #nextId = 1;
  readonly #running = new Map<number, Running>();
  readonly #waiting: Job[] = [];
  #stopped = false;

  constructor(options: VaultWorkerOptions) {
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
        reject(new StoreUnavailable("the vault is closed"));
        return;
      }
      if (this.#waiting.length >= this.#options.waiting) {
        reject(
          new Problem("rate_limited", "The vault has as much waiting as it can hold.", {
            headers: { "Retry-After": "1" },
          }),
        );
        return;
      }
      this.#waiting.push({ name, request, resolve: resolve as (answer: unknown) => void, reject });
      this.#next();
    });
  }

  stop(): void {
    this.#stopped = true;
    this.#end(new StoreUnavailable("the vault is closed"));
    for (const job of this.#waiting.splice(0)) job.reject(new StoreUnavailable("the vault is closed"));
  }

  #next(): void {
    while (this.#running.size < this.#options.atOnce) {
      const job = this.#waiting.shift();
      if (!job) return;
      const id = this.#nextId++;
      const timer = setTimeout(() => this.#overdue(id), this.#options.timeoutMs);
      this.#running.set(id, { ...job, timer });
      this.#open().postMessage({ id, job: job.name, request: job.request });
    }
  }

  #open(): Worker {
    if (this.#worker) return this.#worker;
    const worker = new Worker(this.#options.program);
    this.#worker = worker;
    worker.onmessage = (message: MessageEvent<JobReply>) => this.#settle(message.data);
    worker.onerror = (event) => {
      event.preventDefault();
      if (this.#worker === worker) this.#end(new Error(`a vault worker failed: ${event.message}`));
    };
    worker.postMessage(this.#options.setup);
    return worker;
  }

  #settle(reply: JobReply): void {
    const job = this.#running.get(reply.id);
    if (!job) return;
    this.#running.delete(reply.id);
    clearTimeout(job.timer);
    if (reply.ok) job.resolve(reply.answer);
    else job.reject(errorOf(reply.failure));
    this.#next();
  }

  /** A thread that does not answer cannot be asked to stop: it is ended, and what else it was doing is done again. */
  #overdue(id: number): void {
    const job = this.#running.get(id);
    if (!job) return;
    this.#running.delete(id);
    job.reject(new JobTimeout(`took longer than ${this.#options.timeoutMs / 1000} seconds`));
    const others = [...this.#running.values()];
    for (const { timer } of others) clearTimeout(timer);
    this.#running.clear();
    this.#close();
    this.#waiting.unshift(...others);
    this.#next();
  }

  /** Ends the thread and everything that it was doing. */
  #end(error: Error): void {
    this.#close();
    for (const job of this.#running.values()) {
      clearTimeout(job.timer);
      job.reject(error);
    }
    this.#running.clear();
    if (!this.#stopped) this.#next();
  }

  #close(): void {
    this.#worker?.terminate();
    this.#worker = null;
  }
}

function errorOf({ message, field, isStore }: JobFailure): Error {
  if (field !== null) return new JobRefused(field, message);
  return isStore ? new StoreUnavailable(message) : new Error(message);
}
