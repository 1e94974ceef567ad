import type { Workspace } from "../access/workspaces.ts";
import { Problem } from "../base/errors.ts";
import { Leases } from "../limits/leases.ts";
import { AgentRoundRobin } from "./agent-round-robin.ts";

/** A task that waits for a slot. */
export interface Queued {
  readonly workspaceId: number;
  readonly taskId: string;
  readonly agentId: number;
}

export interface SchedulerParts {
  /** Tasks that this process runs at once, over all workspaces. */
  readonly nodeCeiling: number;
  /** Tasks that may wait in one workspace. */
  readonly queueLimit: number;
  workspace(id: number): Workspace;
  /** Told when a workspace runs more than its limit while enforcement is soft. */
  overLimit(workspace: Workspace): void;
  /** Runs one task to its end. MUST NOT reject. */
  run(queued: Queued): Promise<void>;
}

/**
 * Decides which tasks wait and which run. A free slot goes to the workspace that runs the fewest tasks; in a workspace its agents
 * take turns, and an agent's own tasks are served first come, first served. Nothing that runs is broken off for another task.
 * Memory only, and synchronous.
 */
export class Scheduler {
  readonly #parts: SchedulerParts;
  readonly #waiting = new Map<number, AgentRoundRobin>();
  readonly #reserved = new Map<number, number>();
  readonly #slots = new Leases();
  readonly #running = new Map<string, Queued & { readonly done: Promise<void> }>();
  #stopped = false;

  constructor(parts: SchedulerParts) {
    this.#parts = parts;
  }

  waiting(workspaceId: number): number {
    return this.#waiting.get(workspaceId)?.size ?? 0;
  }

  running(workspaceId: number): number {
    return this.#slots.held(workspaceId);
  }

  get totalRunning(): number {
    return this.#slots.total;
  }

  get totalWaiting(): number {
    let total = 0;
    for (const queue of this.#waiting.values()) total += queue.size;
    return total;
  }

  /**
   * Keeps a place in the queue for a task that is about to be stored, so that parallel calls cannot overfill it.
   * @returns gives the place back, or turns it into the queued task.
   * @throws Problem 429 `queue_full`
   */
  reserve(workspaceId: number): { release(): void; enqueue(queued: Queued): void } {
    const places = this.#reserved.get(workspaceId) ?? 0;
    if (this.waiting(workspaceId) + places >= this.#parts.queueLimit) {
      throw new Problem("queue_full", `${this.#parts.queueLimit} tasks are waiting in this workspace.`, {
        headers: { "Retry-After": "5" },
      });
    }
    this.#reserved.set(workspaceId, places + 1);
    let held = true;
    const release = () => {
      if (!held) return;
      held = false;
      const left = (this.#reserved.get(workspaceId) ?? 1) - 1;
      if (left > 0) this.#reserved.set(workspaceId, left);
      else this.#reserved.delete(workspaceId);
    };
    return {
      release,
      enqueue: (queued) => {
        release();
        this.enqueue(queued);
      },
    };
  }

  /** Also used at the start for tasks accepted by an earlier process, which count even past the limit. */
  enqueue(queued: Queued): void {
    this.enqueueAll([queued]);
  }

  /** As `enqueue`; nobody is started before all of them have their places, so that no agent is ahead for coming first. */
  enqueueAll(tasks: readonly Queued[]): void {
    for (const queued of tasks) {
      const queue = this.#waiting.get(queued.workspaceId) ?? new AgentRoundRobin();
      queue.add(queued);
      this.#waiting.set(queued.workspaceId, queue);
    }
    this.pump();
  }

  /** Takes a task out of the queue. False when it is not waiting. */
  remove(workspaceId: number, taskId: string): boolean {
    const queue = this.#waiting.get(workspaceId);
    if (!queue?.remove(taskId)) return false;
    if (queue.size === 0) this.#waiting.delete(workspaceId);
    return true;
  }

  isWaiting(workspaceId: number, taskId: string): boolean {
    return this.#waiting.get(workspaceId)?.has(taskId) ?? false;
  }

  /** All that wait, over all workspaces. */
  allWaiting(): Queued[] {
    return [...this.#waiting.values()].flatMap((queue) => queue.all());
  }

  /** The waiting tasks of a workspace. */
  waitingIn(workspaceId: number): Queued[] {
    return this.#waiting.get(workspaceId)?.all() ?? [];
  }

  /** The running tasks of a workspace. */
  runningIn(workspaceId: number): Queued[] {
    return [...this.#running.values()].filter((run) => run.workspaceId === workspaceId);
  }

  /** The waiting tasks of an agent. */
  waitingOf(workspaceId: number, agentId: number): Queued[] {
    return this.#waiting.get(workspaceId)?.of(agentId) ?? [];
  }

  /** The running tasks of an agent. */
  runningOf(workspaceId: number, agentId: number): Queued[] {
    return this.runningIn(workspaceId).filter((run) => run.agentId === agentId);
  }

  /** Resolves when the task that is running now has ended; at once when it is not running. */
  async ended(taskId: string): Promise<void> {
    await this.#running.get(taskId)?.done;
  }

  /** Starts nothing more, for good, and resolves when what runs has ended. What waits keeps its place. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all([...this.#running.values()].map((run) => run.done));
  }

  /** Starts what may start. Called whenever a task came, a task ended or a limit changed. */
  pump(): void {
    while (!this.#stopped && this.#slots.total < this.#parts.nodeCeiling) {
      const workspaceId = this.#nextWorkspace();
      if (workspaceId === undefined) return;
      const queue = this.#waiting.get(workspaceId);
      const next = queue?.take();
      // To the end of the line, so that workspaces that run equally many take turns.
      this.#waiting.delete(workspaceId);
      if (queue && queue.size > 0) this.#waiting.set(workspaceId, queue);
      if (!next) continue;
      const workspace = this.#parts.workspace(workspaceId);
      if (this.running(workspaceId) >= workspace.limits.concurrentTasks) this.#parts.overLimit(workspace);
      this.#start(next);
    }
  }

  /**
   * The waiting workspace that runs the fewest tasks, of several the one that waited longest for its turn. A slot that comes
   * free goes to a workspace that has none, not to the one that already holds most of them.
   */
  #nextWorkspace(): number | undefined {
    let found: number | undefined;
    let fewest = Number.POSITIVE_INFINITY;
    for (const workspaceId of this.#waiting.keys()) {
      const running = this.running(workspaceId);
      if (running >= fewest || !this.#mayStart(workspaceId)) continue;
      if (running === 0) return workspaceId;
      found = workspaceId;
      fewest = running;
    }
    return found;
  }

  #mayStart(workspaceId: number): boolean {
    const { concurrentTasks, enforcement } = this.#parts.workspace(workspaceId).limits;
    return enforcement === "soft" || this.running(workspaceId) < concurrentTasks;
  }

  #start(queued: Queued): void {
    this.#slots.take(queued.workspaceId, queued.taskId);
    const done = this.#parts.run(queued).finally(() => {
      this.#slots.release(queued.taskId);
      this.#running.delete(queued.taskId);
      this.pump();
    });
    this.#running.set(queued.taskId, { ...queued, done });
  }
}
