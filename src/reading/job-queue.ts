import { StoreUnavailable } from "../store/db.ts";
import { gaveUpTurn, type Turn, type TurnLimits, WorkspaceRoundRobin } from "./workspace-round-robin.ts";

/** A waiting or running job, with its caller's promise. */
export interface Job<Request, Answer> extends Turn {
  readonly request: Request;
  resolve(answer: Answer): void;
  reject(error: unknown): void;
}

/** Jobs waiting for a worker. Each is settled exactly once: done, refused, abandoned by its caller, or closed. */
export class JobQueue<Request, Answer> {
  readonly #turns: WorkspaceRoundRobin<Job<Request, Answer>>;
  readonly #added: () => void;
  #closed = false;

  /** `added` is called after each new job. */
  constructor(limits: TurnLimits, added: () => void) {
    this.#turns = new WorkspaceRoundRobin(limits);
    this.#added = added;
  }

  get size(): number {
    return this.#turns.size;
  }

  /** @throws Problem 429 `queue_full`, StoreUnavailable once the queue is closed */
  do(request: Request, { workspaceId, signal }: Turn): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#closed) throw queueClosed();
      if (signal?.aborted) throw gaveUpTurn();
      const leave = () => {
        if (this.#turns.remove(job)) reject(gaveUpTurn());
      };
      const settle = () => signal?.removeEventListener("abort", leave);
      const job: Job<Request, Answer> = {
        workspaceId,
        signal,
        request,
        resolve(answer) {
          settle();
          resolve(answer);
        },
        reject(error) {
          settle();
          reject(error);
        },
      };
      this.#turns.add(job);
      signal?.addEventListener("abort", leave);
      this.#added();
    });
  }

  take(mayRun?: (workspaceId: number) => boolean): Job<Request, Answer> | undefined {
    return this.#turns.take(mayRun);
  }

  /** Returns a job that its worker did not start. */
  putBack(job: Job<Request, Answer>): void {
    if (job.signal?.aborted) job.reject(gaveUpTurn());
    else this.#turns.putBack(job);
  }

  /** Refuses all waiting jobs, and every job from now on. */
  close(): void {
    this.#closed = true;
    for (const job of this.#turns.drain()) job.reject(queueClosed());
  }
}

export function queueClosed(): StoreUnavailable {
  return new StoreUnavailable("the server is stopping");
}
