import { partsOf, type TaskParts } from "../parts.ts";
import type { QueuedTask } from "../queue/scheduler.ts";
import type { TaskInterruption } from "./interruption.ts";
import type { EndingRetries } from "./retries.ts";
import { endTask, loadQueuedTask } from "./store-retries.ts";

/**
 * The maximum number of tasks ended at once. Each of these is in memory with its prompt; waiting tasks take a few
 * hundred bytes each.
 */
const AT_ONCE = 64;

/** A task's end that is being written. */
export interface PendingEnd {
  readonly control: AbortController;
  /** Resolves when the end is written or left to the next start. */
  readonly done: Promise<void>;
}

interface PendingEnding extends PendingEnd {
  readonly queued: QueuedTask;
  readonly interruption: TaskInterruption;
  readonly finish: () => void;
}

/**
 * Ends tasks that were removed from the queue before they began. There may be as many as the queues can hold: 10,000
 * in each workspace. While the store cannot be written, only some ends are retried, and all count as deferred.
 */
export class QueueEndings {
  readonly #parts: TaskParts;
  readonly #stopping: AbortSignal;
  readonly #retries: EndingRetries;
  /** All unfinished ends, oldest first. */
  readonly #all = new Map<string, PendingEnding>();
  readonly #untried = new Set<PendingEnding>();
  #active = 0;
  #isRefused = false;

  constructor(parts: TaskParts, stopping: AbortSignal, retries: EndingRetries) {
    this.#parts = parts;
    this.#stopping = stopping;
    this.#retries = retries;
  }

  add(queued: QueuedTask, interruption: TaskInterruption): PendingEnd {
    const control = new AbortController();
    control.abort(interruption);
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiting: PendingEnding = { control, done: promise, queued, interruption, finish: resolve };
    this.#all.set(queued.taskId, waiting);
    this.#untried.add(waiting);
    void interruption.deferred.then(() => this.#refused());
    if (this.#isRefused) interruption.defer();
    this.#pump();
    return waiting;
  }

  get size(): number {
    return this.#all.size;
  }

  all(): readonly QueuedTask[] {
    return [...this.#all.values()].map(({ queued }) => queued);
  }

  find(taskId: string): PendingEnd | undefined {
    return this.#all.get(taskId);
  }

  /** Pending ends of a workspace, or of one of its agents. */
  of(workspaceId: number, agentId: number | null): readonly PendingEnd[] {
    return [...this.#all.values()].filter(
      ({ queued }) => queued.workspaceId === workspaceId && (agentId === null || queued.agentId === agentId),
    );
  }

  /** Resolves when none are left. */
  async ended(): Promise<void> {
    while (this.#all.size > 0) await Promise.all([...this.#all.values()].map(({ done }) => done));
  }

  /**
   * Puts off all others as soon as the store has refused one, so that callers do not wait for each to be refused in
   * turn.
   */
  #refused(): void {
    if (this.#isRefused) return;
    this.#isRefused = true;
    for (const { interruption } of this.#untried) interruption.defer();
  }

  #pump(): void {
    for (const waiting of this.#untried) {
      if (this.#active >= AT_ONCE) return;
      this.#untried.delete(waiting);
      this.#active += 1;
      void this.#end(waiting).finally(() => {
        this.#active -= 1;
        this.#all.delete(waiting.queued.taskId);
        waiting.finish();
        this.#pump();
      });
    }
  }

  /** Never rejects. */
  async #end({ queued, interruption, control }: PendingEnding): Promise<void> {
    const parts = partsOf(this.#parts, queued);
    const journal = parts.log;
    const log = parts.hub.find(queued.taskId);
    const facts = { task: queued.taskId, ...interruption.decision?.facts() };
    try {
      if (this.#isRefused && this.#stopping.aborted) {
        journal.error("a task's end cannot be written", facts);
        return;
      }
      const signals = { signal: control.signal, stopping: this.#stopping, retries: this.#retries };
      const task = await loadQueuedTask(parts, queued, signals);
      if (!log || !task || !interruption.ending) return;
      if (await endTask(parts, task, log, interruption.ending, signals)) this.#isRefused = false;
    } catch (error) {
      journal.error("a task cannot be ended", { ...facts, error });
    } finally {
      // The end was not written: readers resume at the next start.
      if (log && !log.closed) log.close(null);
    }
  }
}
