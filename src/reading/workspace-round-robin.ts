import { Problem } from "../base/errors.ts";
import { RoundRobin, type WaitingItem } from "../base/round-robin.ts";

/** A piece of work waiting for its workspace's turn. */
export interface Turn extends WaitingItem {
  /** Aborted when the caller has left. A turn that has not come by then is abandoned. */
  readonly signal?: AbortSignal | undefined;
}

export interface TurnLimits {
  /** Maximum number of waiting turns of one workspace. Beyond that, its next call is refused. */
  readonly perWorkspace: number;
  /** Maximum number of waiting turns of all workspaces. */
  readonly total: number;
}

/** Jobs of workspaces that take turns, with a limit on how many wait. */
export class WorkspaceRoundRobin<Job extends Turn> extends RoundRobin<Job> {
  readonly #limits: TurnLimits;

  constructor(limits: TurnLimits) {
    super();
    this.#limits = limits;
  }

  /** False if another job of the workspace would be refused. */
  hasRoom(workspaceId: number): boolean {
    const { total, perWorkspace } = this.#limits;
    return this.size < total && this.sizeOf(workspaceId) < perWorkspace;
  }

  /** @throws Problem 429 `queue_full` */
  override add(job: Job): void {
    if (!this.hasRoom(job.workspaceId)) throw queueFull();
    super.add(job);
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
