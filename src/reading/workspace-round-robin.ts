import { Problem } from "../base/errors.ts";

/** A piece of work waiting for its workspace's turn. */
export interface Turn {
  readonly workspaceId: number;
  /** Aborted when the caller has left. A turn that has not come by then is given up. */
  readonly signal?: AbortSignal | undefined;
}

export interface TurnLimits {
  /** The most waiting turns of one workspace. Beyond that, its next call is refused. */
  readonly perWorkspace: number;
  /** The most waiting turns of all workspaces. */
  readonly total: number;
}

/**
 * A queue in which workspaces take turns, one job each. A workspace's own jobs are served in order. A workspace that
 * has had its turn goes to the end of the round, so no workspace waits behind a hundred jobs of another one.
 */
export class WorkspaceRoundRobin<Job extends Turn> {
  readonly #limits: TurnLimits;
  /** The waiting jobs of each workspace that has any, in the order of the round. */
  readonly #round = new Map<number, Job[]>();
  #size = 0;

  constructor(limits: TurnLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#size;
  }

  /** False if another job of the workspace would be refused. */
  hasRoom(workspaceId: number): boolean {
    const { total, perWorkspace } = this.#limits;
    return this.#size < total && (this.#round.get(workspaceId)?.length ?? 0) < perWorkspace;
  }

  /** @throws Problem 429 `queue_full` */
  add(job: Job): void {
    if (!this.hasRoom(job.workspaceId)) throw queueFull();
    const waiting = this.#round.get(job.workspaceId);
    if (waiting) waiting.push(job);
    else this.#round.set(job.workspaceId, [job]);
    this.#size += 1;
  }

  /** Returns a job that was taken but not done to the front of its workspace's jobs. */
  putBack(job: Job): void {
    const waiting = this.#round.get(job.workspaceId);
    if (waiting) waiting.unshift(job);
    else this.#round.set(job.workspaceId, [job]);
    this.#size += 1;
  }

  /** Takes the next job of the workspaces that may run one. Undefined if none is waiting. */
  take(mayRun: (workspaceId: number) => boolean = () => true): Job | undefined {
    for (const [workspaceId, waiting] of this.#round) {
      if (!mayRun(workspaceId)) continue;
      const job = waiting.shift();
      this.#round.delete(workspaceId);
      if (waiting.length > 0) this.#round.set(workspaceId, waiting);
      this.#size -= 1;
      return job;
    }
    return undefined;
  }

  /** Removes a waiting job. False if it is not waiting. */
  remove(job: Job): boolean {
    const waiting = this.#round.get(job.workspaceId);
    const place = waiting?.indexOf(job) ?? -1;
    if (!waiting || place < 0) return false;
    waiting.splice(place, 1);
    if (waiting.length === 0) this.#round.delete(job.workspaceId);
    this.#size -= 1;
    return true;
  }

  /** Removes and returns all jobs. */
  drain(): Job[] {
    const jobs = [...this.#round.values()].flat();
    this.#round.clear();
    this.#size = 0;
    return jobs;
  }
}

/** The refusal of a call that finds the queue full. */
export function queueFull(): Problem {
  return new Problem("queue_full", "The server's queue is full. Try again later.", {
    headers: { "Retry-After": "1" },
  });
}

/** Ends a call whose caller left before its turn. Nothing was denied, so it is recorded as cancelled. */
export function gaveUpTurn(): Problem {
  return new Problem("client_closed", "The client closed the connection before its turn came.");
}
