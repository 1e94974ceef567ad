import type { Clock } from "../../../base/clock.ts";
import type { OtherQueues } from "../other-queues.ts";
import type { Scheduler } from "../scheduler.ts";
import { type CountsParts, QueueCounts } from "./counts.ts";
import { Places, type PlacesParts } from "./places.ts";

/** A task that has waited for this time may be taken by any node that is idle. */
const WAITED_MS = 1_000;

export interface QueuesParts extends Omit<PlacesParts, "nodes"> {
  readonly nodes: PlacesParts["nodes"] & CountsParts["nodes"];
  readonly scheduler: Pick<Scheduler, "running" | "waiting" | "totalWaiting" | "freeSlots" | "hold" | "pump">;
  /** Takes at most `limit` tasks that have waited at another node since before `before`. */
  takeWaiting(nodeId: string, workspaceId: number, before: number, limit: number): Promise<void>;
  readonly clock: Clock;
}

/** The queues of all nodes, as one node's scheduler sees them. */
export class SharedQueues implements OtherQueues {
  readonly #parts: QueuesParts;
  readonly #places: Places;
  readonly #counts: QueueCounts;

  constructor(parts: QueuesParts) {
    this.#parts = parts;
    this.#places = new Places(parts);
    this.#counts = new QueueCounts(parts);
  }

  granted(workspaceId: number): number {
    return this.#places.granted(workspaceId);
  }

  waiting(workspaceId: number): number {
    return this.#counts.waiting(workspaceId);
  }

  running(workspaceId: number): number {
    return this.#counts.running(workspaceId);
  }

  changed(workspaceId: number): void {
    this.#places.changed(workspaceId);
    this.#counts.changed(workspaceId);
  }

  /** See `Scheduler.hold`. */
  hold(): () => void {
    return this.#parts.scheduler.hold();
  }

  close(): void {
    this.#places.close();
  }

  /** If nothing waits here, takes tasks that wait elsewhere. Called with each beat. @throws StoreUnavailable */
  async balance(): Promise<void> {
    const { scheduler, workspace, clock } = this.#parts;
    for (const { nodeId, workspaceId, waiting } of [...this.#counts.waitingElsewhere()]) {
      const { enforcement, concurrentTasks } = workspace(workspaceId).limits;
      const free = scheduler.freeSlots;
      if (free === 0 || scheduler.totalWaiting > 0) return;
      const running = scheduler.running(workspaceId) + this.running(workspaceId);
      const allowed = enforcement === "soft" ? free : Math.min(free, concurrentTasks - running);
      const limit = Math.min(allowed, Math.ceil(waiting / 2));
      if (limit > 0) await this.#parts.takeWaiting(nodeId, workspaceId, clock.now() - WAITED_MS, limit);
    }
  }
}
