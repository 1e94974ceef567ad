import type { Workspace } from "../../access/workspaces.ts";
import { Problem } from "../../base/errors.ts";
import { Leases } from "../../limits/leases.ts";
import { AgentRoundRobin } from "./agent-round-robin.ts";
import type { OtherQueues } from "./other-queues.ts";

/** A task that waits for a slot. */
export interface QueuedTask {
  readonly workspaceId: number;
  readonly taskId: string;
  readonly agentId: number;
  /**
   * Set only for calls that are not tasks, such as a client's (`enter`): it runs in place of a task until the call
   * has ended.
   */
  readonly call?: () => Promise<void>;
}

/** A model call outside of tasks, which takes a task's slot. */
export interface SlotCall {
  readonly workspaceId: number;
  /** Null if it is not made as an agent. */
  readonly agentId: number | null;
  /** Different from every task's id. */
  readonly id: string;
}

/** Represents callers that do not act as an agent. Agents' ids begin at 1. */
export const NO_AGENT = 0;

export interface SchedulerParts {
  /** The maximum number of tasks that this process runs at once, over all workspaces. */
  readonly nodeCeiling: number;
  /** The maximum number of tasks that may wait in one workspace. */
  readonly queueLimit: number;
  workspace(id: number): Workspace;
  /** Opens what the other nodes have queued and run. Absent if there are none. */
  readonly openOthers?: ((scheduler: Scheduler) => OtherQueues) | undefined;
  /** Called when a workspace runs more tasks than its limit while enforcement is soft. */
  overLimit(workspace: Workspace): void;
  /** Runs one task to its end. MUST NOT reject. */
  run(queued: QueuedTask): Promise<void>;
}

/**
 * Decides which tasks wait and which run. A free slot goes to the workspace that runs the fewest tasks. Within a
 * workspace, agents take turns; an agent's own tasks are served first come, first served. A running task is never
 * interrupted for another. Synchronous, and only in memory.
 */
export class Scheduler {
  readonly #parts: SchedulerParts;
  readonly #waiting = new Map<number, AgentRoundRobin>();
  readonly #reserved = new Map<number, number>();
  readonly #slots = new Leases();
  readonly #running = new Map<string, QueuedTask & { readonly done: Promise<void> }>();
  readonly #others: OtherQueues | null;
  #stopped = false;
  #isHeld = false;

  constructor(parts: SchedulerParts) {
    this.#parts = parts;
    this.#others = parts.openOthers?.(this) ?? null;
  }

  waiting(workspaceId: number): number {
    return this.#waiting.get(workspaceId)?.size ?? 0;
  }

  running(workspaceId: number): number {
    return this.#slots.held(workspaceId);
  }

  /** How many tasks and calls run on all nodes, as far as this one knows. */
  runningEverywhere(workspaceId: number): number {
    return this.running(workspaceId) + (this.#others?.running(workspaceId) ?? 0);
  }

  /** How many tasks and calls wait on all nodes, as far as this one knows. */
  waitingEverywhere(workspaceId: number): number {
    return this.waiting(workspaceId) + (this.#others?.waiting(workspaceId) ?? 0);
  }

  get freeSlots(): number {
    return this.#stopped ? 0 : Math.max(0, this.#parts.nodeCeiling - this.#slots.total);
  }

  get totalRunning(): number {
    return this.#slots.total;
  }

  /** How many tasks wait, without calls that are not tasks. */
  get waitingTasks(): number {
    return this.allWaiting().length;
  }

  get totalWaiting(): number {
    let total = 0;
    for (const queue of this.#waiting.values()) total += queue.size;
    return total;
  }

  /**
   * Reserves a place in the queue for a task that is about to be stored, so that concurrent calls cannot overfill the
   * queue.
   * @returns functions that release the place or use it for the queued task
   * @throws Problem 429 `queue_full`
   */
  reserve(workspaceId: number): { release(): void; enqueue(queued: QueuedTask): void } {
    const places = this.#reserved.get(workspaceId) ?? 0;
    if (this.waitingEverywhere(workspaceId) + places >= this.#parts.queueLimit) {
      throw new Problem(
        "queue_full",
        `The queue of this workspace is full (${this.#parts.queueLimit} tasks). Try again later.`,
        {
          headers: { "Retry-After": "5" },
        },
      );
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

  /** Queues a task regardless of the limit. Also used at the start for tasks that an earlier process accepted. */
  enqueue(queued: QueuedTask): void {
    this.enqueueAll([queued]);
  }

  /** Like `enqueue`, but queues all tasks before it starts any, so that no agent gains by being first. */
  enqueueAll(tasks: readonly QueuedTask[]): void {
    for (const queued of tasks) {
      const queue = this.#waiting.get(queued.workspaceId) ?? new AgentRoundRobin();
      queue.add(queued);
      this.#waiting.set(queued.workspaceId, queue);
    }
    this.pump();
    const others = this.#others;
    if (others) for (const { workspaceId } of tasks) others.changed(workspaceId);
  }

  /**
   * Waits for a slot for a call that is not a task. Calls and tasks take turns as if they were all tasks.
   * @returns a function that MUST be called when the call has ended; safe to call more than once
   * @throws Problem 429 `queue_full`; the signal's reason if it aborts while the call waits
   */
  async enter({ workspaceId, agentId, id }: SlotCall, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    const begun = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<void>();
    const queued: QueuedTask = {
      ...{ workspaceId, taskId: id, agentId: agentId ?? NO_AGENT },
      call() {
        begun.resolve();
        return ended.promise;
      },
    };
    const giveUp = () => {
      if (this.remove(workspaceId, id)) begun.reject(signal.reason);
    };
    signal.addEventListener("abort", giveUp, { once: true });
    try {
      this.reserve(workspaceId).enqueue(queued);
      await begun.promise;
      return ended.resolve;
    } finally {
      signal.removeEventListener("abort", giveUp);
    }
  }

  /** Removes a task from the queue. Returns false if it is not waiting. */
  remove(workspaceId: number, taskId: string): boolean {
    const queue = this.#waiting.get(workspaceId);
    if (!queue?.remove(taskId)) return false;
    if (queue.size === 0) this.#waiting.delete(workspaceId);
    this.#others?.changed(workspaceId);
    return true;
  }

  isWaiting(workspaceId: number, taskId: string): boolean {
    return this.#waiting.get(workspaceId)?.has(taskId) ?? false;
  }

  /** The waiting tasks of all workspaces. */
  allWaiting(): QueuedTask[] {
    return [...this.#waiting.values()].flatMap((queue) => queue.all()).filter(isTask);
  }

  waitingIn(workspaceId: number): QueuedTask[] {
    return (this.#waiting.get(workspaceId)?.all() ?? []).filter(isTask);
  }

  allRunning(): QueuedTask[] {
    return [...this.#running.values()].filter(isTask);
  }

  runningIn(workspaceId: number): QueuedTask[] {
    return this.allRunning().filter((run) => run.workspaceId === workspaceId);
  }

  waitingOf(workspaceId: number, agentId: number): QueuedTask[] {
    return (this.#waiting.get(workspaceId)?.of(agentId) ?? []).filter(isTask);
  }

  runningOf(workspaceId: number, agentId: number): QueuedTask[] {
    return this.runningIn(workspaceId).filter((run) => run.agentId === agentId);
  }

  /** Resolves when the running task has ended; at once if it is not running. */
  async ended(taskId: string): Promise<void> {
    await this.#running.get(taskId)?.done;
  }

  /** Starts no waiting tasks until the returned function is called. */
  hold(): () => void {
    this.#isHeld = true;
    return () => {
      this.#isHeld = false;
      this.pump();
    };
  }

  /**
   * Permanently stops starting tasks, and resolves when the running ones have ended. Waiting tasks keep their places.
   */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all([...this.#running.values()].map((run) => run.done));
  }

  /**
   * Starts a run at once if a slot is free and no other task of its workspace waits for one.
   * @returns false if it has to wait in the queue
   */
  start(queued: QueuedTask, run: () => Promise<void>): boolean {
    const { workspaceId } = queued;
    const isFree = !this.#stopped && this.#slots.total < this.#parts.nodeCeiling;
    if (!isFree || this.waiting(workspaceId) > 0 || !this.#mayStart(workspaceId)) return false;
    this.#start(queued, run);
    return true;
  }

  /** Starts tasks that may start after a workspace's limits have changed. */
  limitsChanged(workspaceId: number): void {
    this.#others?.changed(workspaceId);
    this.pump();
  }

  /** Starts all tasks that may start. Called whenever a task arrives, a task ends or a limit changes. */
  pump(): void {
    while (!this.#stopped && !this.#isHeld && this.#slots.total < this.#parts.nodeCeiling) {
      const workspaceId = this.#nextWorkspace();
      if (workspaceId === undefined) return;
      const queue = this.#waiting.get(workspaceId);
      const next = queue?.take();
      // Moves the workspace to the end, so that workspaces with equally many running tasks take turns.
      this.#waiting.delete(workspaceId);
      if (queue && queue.size > 0) this.#waiting.set(workspaceId, queue);
      if (next) this.#start(next, next.call ?? (() => this.#parts.run(next)));
    }
  }

  /**
   * The waiting workspace that runs the fewest tasks; if there are several, the one that has waited longest for its
   * turn. A free slot thus goes to a workspace without running tasks rather than to the one that already uses most
   * slots.
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
    if (enforcement === "soft") return true;
    const running = this.running(workspaceId);
    return running < concurrentTasks && running < (this.#others?.granted(workspaceId) ?? concurrentTasks);
  }

  #start(queued: QueuedTask, run: () => Promise<void>): void {
    const workspace = this.#parts.workspace(queued.workspaceId);
    if (this.runningEverywhere(workspace.id) >= workspace.limits.concurrentTasks)
      this.#parts.overLimit(workspace);
    this.#slots.take(queued.workspaceId, queued.taskId);
    const done = run().finally(() => {
      this.#slots.release(queued.taskId);
      this.#running.delete(queued.taskId);
      this.#others?.changed(queued.workspaceId);
      this.pump();
    });
    this.#running.set(queued.taskId, { ...queued, done });
    this.#others?.changed(queued.workspaceId);
  }
}

function isTask({ call }: QueuedTask): boolean {
  return call === undefined;
}
