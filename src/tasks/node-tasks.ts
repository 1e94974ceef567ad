import { StoreUnavailable } from "../store/db.ts";
import { interruptionOf, TaskInterruption } from "./ending/interruption.ts";
import { type PendingEnd, QueueEndings } from "./ending/queued-tasks.ts";
import { EndingRetries } from "./ending/retries.ts";
import type { TaskParts } from "./parts.ts";
import { type QueuedTask, Scheduler, type SchedulerParts } from "./queue/scheduler.ts";
import type { RecoveredTasks } from "./recovery/recover.ts";
import type { EarlyRun } from "./run/first-write.ts";
import { runTask } from "./run/run-task.ts";
import { isFinal, notBefore, type Task } from "./task.ts";

/** A running task. `task` is set once it is read. */
interface RunningTask {
  readonly control: AbortController;
  task: Task | null;
}

/** An end that was reported to callers but is not written yet. */
type ShownEnd = Pick<Task, "status" | "error" | "output"> & { readonly finishedAt: number };

/**
 * The open tasks of this node, from their acceptance or recovery to their end: in the queue, running, resting, or
 * ending. In memory.
 */
export class NodeTasks {
  readonly scheduler: Scheduler;
  readonly #parts: TaskParts;
  readonly #runs = new Map<string, RunningTask>();
  /** Tasks without a slot or a place in the queue: they wait for a person, or were returned for the next start. */
  readonly #resting = new Map<string, QueuedTask>();
  /** Tasks removed from the queue whose end is being written. */
  readonly #endings: QueueEndings;
  /** The tasks are shown as ended. */
  readonly #shownEnds = new Map<string, ShownEnd>();
  /** Aborts when the process is about to stop: from then on no task is accepted and no call is made. */
  readonly #draining = new AbortController();
  /** Aborts when the process stops: ends that cannot be written are left to the next start. */
  readonly #stopping = new AbortController();
  readonly #retries = new EndingRetries();

  constructor(parts: TaskParts, scheduling: Omit<SchedulerParts, "run">) {
    this.#parts = parts;
    this.#endings = new QueueEndings(parts, this.#stopping.signal, this.#retries);
    this.scheduler = new Scheduler({ ...scheduling, run: (queued) => this.#run(queued) });
  }

  get draining(): AbortSignal {
    return this.#draining.signal;
  }

  get stopping(): AbortSignal {
    return this.#stopping.signal;
  }

  /** Takes over recovered tasks, but queues none of them: the queued ones are returned. */
  add(workspaceId: number, { queued, awaiting, stopped }: RecoveredTasks): readonly QueuedTask[] {
    for (const task of awaiting) this.#resting.set(task.taskId, task);
    const isAll = this.#parts.workspaces.isStopped(workspaceId);
    const reason = isAll ? "workspace_stopped" : "agent_stopped";
    const interruption = new TaskInterruption(reason, this.#parts.clock.now());
    for (const task of stopped) this.#endings.add(task, interruption);
    return queued;
  }

  /** Resolves when nothing runs any more. Each run completes its current call, and leaves its task for later. */
  async drain(): Promise<void> {
    this.#draining.abort();
    await this.scheduler.stop();
  }

  /** Interrupts runs, ends the streams of waiting tasks, and resolves when nothing writes any more. */
  async stop(): Promise<void> {
    this.#draining.abort();
    this.#stopping.abort();
    const shutdown = new TaskInterruption("shutdown", this.#parts.clock.now());
    for (const { control } of this.#runs.values()) control.abort(shutdown);
    for (const { taskId } of this.quiet()) this.#parts.hub.find(taskId)?.close(null);
    await this.scheduler.stop();
    await this.#endings.ended();
  }

  /** Begins the run of a task that is about to be stored. Returns false if there is no slot for it. */
  begin(queued: QueuedTask, run: EarlyRun): boolean {
    return this.scheduler.start(queued, () => this.#run(queued, run));
  }

  /** A running task, as it was read when its run began. */
  running(taskId: string): Task | null {
    return this.#runs.get(taskId)?.task ?? null;
  }

  /** Ends the tasks of an agent, or of the whole workspace if `agentId` is null. */
  async endStopped(workspaceId: number, agentId: number | null): Promise<void> {
    const { scheduler } = this;
    const open = [
      ...scheduler.runningIn(workspaceId),
      ...scheduler.waitingIn(workspaceId),
      ...[...this.#resting.values()].filter((queued) => queued.workspaceId === workspaceId),
    ];
    const meant = agentId === null ? open : open.filter((queued) => queued.agentId === agentId);
    const reason = agentId === null ? "workspace_stopped" : "agent_stopped";
    const now = this.#parts.clock.now();
    // Those that were taken over after the stop are ending already.
    const ending = this.#endings.of(workspaceId, agentId).map(async ({ control, done }) => {
      await Promise.race([done, interruptionOf(control.signal)?.deferred ?? done]);
    });
    const ended = meant.map((queued) => this.interrupt(queued, new TaskInterruption(reason, now)));
    await Promise.all([...ended, ...ending]);
  }

  /**
   * Resolves when the ends of all tasks stopped in a workspace, or of one of its agents, are written. Until then,
   * after a crash, only the stop itself would keep these tasks from running again.
   * @throws StoreUnavailable if the store refuses one of them
   */
  async endsWritten(workspaceId: number, agentId: number | null): Promise<void> {
    const runs = this.scheduler
      .runningIn(workspaceId)
      .filter((run) => (agentId === null || run.agentId === agentId) && this.isEnding(run.taskId));
    const ends = [
      ...this.#endings.of(workspaceId, agentId).map(({ done }) => done),
      ...runs.map(({ taskId }) => this.scheduler.ended(taskId)),
    ];
    if (ends.length === 0) return;
    const refused = Promise.withResolvers<never>();
    const forget = this.#retries.refused.listen(() => {
      refused.reject(new StoreUnavailable("the ends of stopped tasks cannot be written yet"));
    });
    try {
      this.#retries.now.emit();
      await Promise.race([Promise.all(ends), refused.promise]);
    } finally {
      forget();
    }
  }

  /** Resumes a task that waited for a person and is queued in the store. */
  async resume(queued: QueuedTask): Promise<void> {
    await this.settled(queued.taskId);
    if (!this.#resting.delete(queued.taskId)) return;
    if (this.#stopping.signal.aborted) return;
    this.scheduler.enqueue(queued);
  }

  /** Waits for the task's run, and returns the task if it rests then. */
  async resting(taskId: string): Promise<QueuedTask | undefined> {
    await this.settled(taskId);
    return this.#resting.get(taskId);
  }

  /**
   * Resumes a task that rested when the store was asked, which had it queued. Since then it may have been resumed, have
   * reached the next decision and rest again: then it stays.
   * @param rested what `resting` returned
   */
  enqueueResting(rested: QueuedTask): void {
    if (this.#resting.get(rested.taskId) !== rested || this.#stopping.signal.aborted) return;
    this.#resting.delete(rested.taskId);
    // A copy: the next rest is another one.
    this.scheduler.enqueue({ ...rested });
  }

  /** Resolves when the task's run has ended, such as the one that requested an approval. */
  settled(taskId: string): Promise<void> {
    return this.scheduler.ended(taskId);
  }

  /** Resolves when this node has nothing more to do with a task that it has lost. */
  async left(taskId: string): Promise<void> {
    await this.settled(taskId);
    await this.#endings.find(taskId)?.done;
  }

  /** Whether the task has neither a slot nor a place in the queue. */
  rests(taskId: string): boolean {
    return this.#resting.has(taskId);
  }

  /** Whether a task has been ended but its end is still being written. */
  isEnding(taskId: string): boolean {
    const run = this.#runs.get(taskId);
    const isEnded = run !== undefined && (interruptionOf(run.control.signal)?.ending ?? null) !== null;
    return isEnded || this.#endings.find(taskId) !== undefined;
  }

  /** Whether the task is in the queue, running, resting or ending. */
  knows(workspaceId: number, taskId: string): boolean {
    const isHere = this.#runs.has(taskId) || this.#resting.has(taskId);
    return (
      isHere || this.scheduler.isWaiting(workspaceId, taskId) || this.#endings.find(taskId) !== undefined
    );
  }

  /** The tasks that do not run: those in the queue, and those that rest. */
  quiet(): readonly QueuedTask[] {
    return [...this.scheduler.allWaiting(), ...this.#resting.values()];
  }

  /** Removes a task that does not run. Returns false if there is none. */
  takeQuiet(workspaceId: number, taskId: string): boolean {
    return this.scheduler.remove(workspaceId, taskId) || this.#resting.delete(taskId);
  }

  /** Interrupts a run. Resolves when it has ended, or at once if the task does not run. */
  async abortRun(taskId: string, interruption: TaskInterruption): Promise<void> {
    const run = this.#pendingRun(taskId);
    run?.control.abort(interruption);
    await run?.done;
  }

  /** All tasks in the queue, running, resting or ending. */
  all(): readonly QueuedTask[] {
    return [...this.quiet(), ...this.scheduler.allRunning(), ...this.#endings.all()];
  }

  /** How many tasks are in the queue, running, resting or ending. */
  get size(): number {
    return this.#runs.size + this.#resting.size + this.#endings.size + this.scheduler.waitingTasks;
  }

  /** The task as its readers see it. */
  shown(task: Task): Task {
    if (this.#shownEnds.size === 0 || isFinal(task.status)) return task;
    const end = this.#shownEnds.get(task.id);
    return end ? { ...task, ...end, finishedAt: notBefore(task, end.finishedAt) } : task;
  }

  /**
   * Ends a waiting or running task.
   * @returns null once its end is written or left to the next start. If the store has refused the end, which is then
   *   written later, the interruption that counts
   */
  async interrupt(queued: QueuedTask, interruption: TaskInterruption): Promise<TaskInterruption | null> {
    const { taskId } = queued;
    const pending = this.takeQuiet(queued.workspaceId, taskId)
      ? this.#endings.add(queued, interruption)
      : (this.#pendingRun(taskId) ?? this.#endings.find(taskId));
    if (!pending) return null;
    const { control, done } = pending;
    control.abort(interruption);
    const counts = interruptionOf(control.signal) ?? interruption;
    const isWritten = await Promise.race([done.then(() => true), counts.deferred.then(() => false)]);
    // The run reached a person's decision at the same moment and missed the interruption.
    if (isWritten && counts.ending && this.#isOpen(queued, control)) return this.interrupt(queued, counts);
    if (isWritten || !counts.ending) return null;
    this.#shownEnds.set(taskId, { ...counts.ending, finishedAt: counts.at });
    void done.then(() => this.#shownEnds.delete(taskId));
    return counts;
  }

  /** Whether it waits, or runs again, after the run that `control` belonged to. */
  #isOpen({ workspaceId, taskId }: QueuedTask, control: AbortController): boolean {
    const run = this.#runs.get(taskId);
    if (run) return run.control !== control;
    return this.#resting.has(taskId) || this.scheduler.isWaiting(workspaceId, taskId);
  }

  #pendingRun(taskId: string): PendingEnd | undefined {
    const run = this.#runs.get(taskId);
    return run && { control: run.control, done: this.scheduler.ended(taskId) };
  }

  async #run(queued: QueuedTask, early: EarlyRun | null = null): Promise<void> {
    const run: RunningTask = { control: new AbortController(), task: null };
    this.#runs.set(queued.taskId, run);
    const signals = {
      signal: run.control.signal,
      draining: this.#draining.signal,
      stopping: this.#stopping.signal,
      retries: this.#retries,
    };
    try {
      const how = await runTask(this.#parts, queued, early, signals, (task) => {
        run.task = task;
      });
      if (how === "awaiting" || how === "givenBack") this.#resting.set(queued.taskId, queued);
      if (how === "awaiting") {
        // It may wait for a day, as may many others.
        this.#parts.hub.find(queued.taskId)?.rest();
        if (this.#stopping.signal.aborted) this.#parts.hub.find(queued.taskId)?.close(null);
      }
    } finally {
      this.#parts.budgets.release(queued.taskId);
      this.#runs.delete(queued.taskId);
    }
  }
}
