import type { Agent } from "../access/agents.ts";
import type { Caller } from "../access/caller.ts";
import { isId } from "../base/ids.ts";
import type { Call, PersonDecision } from "../gate/call.ts";
import type { LimitNotices } from "../gate/notices.ts";
import { type Sql, StoreUnavailable } from "../store/db.ts";
import { interruptionOf, TaskInterruption } from "./ending/interruption.ts";
import { type PendingEnd, QueueEndings } from "./ending/queued-tasks.ts";
import { EndingRetries } from "./ending/retries.ts";
import type { EventReader } from "./events/hub.ts";
import type { EventMemory } from "./events/stored-events.ts";
import type { TaskParts } from "./parts.ts";
import { acceptTask, type DispatchResult, draining, type NewTaskRequest, replay } from "./queue/accept.ts";
import { checkRequest, type DispatchRequest } from "./queue/dispatch-request.ts";
import { findReplay, keyOf } from "./queue/idempotency.ts";
import { type QueuedTask, Scheduler } from "./queue/scheduler.ts";
import { provenAgent, requireProvenEnd } from "./recovery/proven-row.ts";
import { recoverTasks } from "./recovery/recover.ts";
import { agentForbidden, finished, noTask, notCancelled } from "./refusals.ts";
import type { TaskFilter } from "./rows/task-ids.ts";
import { findTask, findTaskFacts, listTasks, type TaskPage } from "./rows/tasks.ts";
import type { EarlyRun } from "./run/first-write.ts";
import { runTask } from "./run/run-task.ts";
import { isFinal, notBefore, type Task, type TaskFacts } from "./task.ts";

/** A running task. `task` is set once it is read. */
interface RunningTask {
  readonly control: AbortController;
  task: Task | null;
}

export interface TaskServiceOptions {
  readonly nodeCeiling: number;
  readonly queueLimit: number;
  readonly notices: LimitNotices;
}

type FindTask<Found extends TaskFacts> = (
  sql: Pick<Sql, "all" | "get">,
  workspaceId: number,
  id: string,
) => Promise<Found | undefined>;

/** Manages tasks from the request to their end. */
export class TaskService {
  readonly #parts: TaskParts;
  readonly #scheduler: Scheduler;
  readonly #runs = new Map<string, RunningTask>();
  /** Tasks without a slot or a place in the queue: they wait for a person, or were returned for the next start. */
  readonly #resting = new Map<string, QueuedTask>();
  /** Tasks removed from the queue whose end is being written. */
  readonly #endings: QueueEndings;
  /** Ends that were reported to callers but are not written yet. The tasks are shown as ended. */
  readonly #shownEnds = new Map<
    string,
    Pick<Task, "status" | "error" | "output"> & { readonly finishedAt: number }
  >();
  /** Aborts when the process is about to stop: from then on no task is accepted and no call is made. */
  readonly #draining = new AbortController();
  /** Aborts when the process stops: ends that cannot be written are left to the next start. */
  readonly #stopping = new AbortController();
  readonly #retries = new EndingRetries();

  constructor(parts: TaskParts, options: TaskServiceOptions) {
    this.#parts = parts;
    this.#endings = new QueueEndings(parts, this.#stopping.signal, this.#retries);
    this.#scheduler = new Scheduler({
      nodeCeiling: options.nodeCeiling,
      queueLimit: options.queueLimit,
      workspace: (id) => parts.workspaces.get(id),
      overLimit: (workspace) => {
        options.notices.exceeded(workspace, "tasks").catch((error: unknown) => {
          parts.log.error("a limit notice cannot be written", { workspace: workspace.name, error });
        });
      },
      run: (queued) => this.#run(queued),
    });
  }

  get scheduler(): Scheduler {
    return this.#scheduler;
  }

  /** Recovers the tasks of an earlier process. Called once, before requests are served. */
  async start(): Promise<void> {
    const waiting: QueuedTask[] = [];
    for (const workspace of this.#parts.workspaces.list()) {
      const { queued, awaiting, stopped } = await recoverTasks(
        this.#parts,
        workspace.id,
        this.#stopping.signal,
      );
      for (const task of awaiting) this.#resting.set(task.taskId, task);
      const isAll = this.#parts.workspaces.isStopped(workspace.id);
      const interruption = new TaskInterruption(
        isAll ? "workspace_stopped" : "agent_stopped",
        this.#parts.clock.now(),
      );
      for (const task of stopped) this.#endings.add(task, interruption);
      waiting.push(...queued);
    }
    this.#scheduler.enqueueAll(waiting);
  }

  /**
   * Refuses new tasks and resolves when nothing runs any more. Each run completes its current call, and is returned
   * to the queue to be resumed at the next start.
   */
  async drain(): Promise<void> {
    this.#draining.abort();
    await this.#scheduler.stop();
  }

  /**
   * Refuses new tasks, interrupts running ones (a later start resumes them), ends the streams of waiting ones, and
   * resolves when nothing writes any more.
   */
  async stop(): Promise<void> {
    this.#draining.abort();
    this.#stopping.abort();
    const shutdown = new TaskInterruption("shutdown", this.#parts.clock.now());
    for (const { control } of this.#runs.values()) control.abort(shutdown);
    const quiet = [...this.#scheduler.allWaiting(), ...this.#resting.values()];
    for (const { taskId } of quiet) this.#parts.hub.find(taskId)?.close(null);
    await this.#scheduler.stop();
    await this.#endings.ended();
  }

  /**
   * Checks a request, makes it durable and queues it. For `within`, see `NewTaskRequest`.
   * @throws Problem with any refusal in the contract, before anything is written
   */
  async dispatch(
    call: Call,
    request: DispatchRequest,
    idempotencyKey: string | undefined,
    within?: NewTaskRequest["within"],
  ): Promise<DispatchResult> {
    const { caller } = call;
    const { clock, db } = this.#parts;
    call.about({ agent: request.agent, ...(request.tier === undefined ? {} : { tier: request.tier }) });
    if (this.#draining.signal.aborted) throw draining();
    if (caller.agent && caller.agent.name !== request.agent) {
      throw agentForbidden(caller.agent.name);
    }
    const key = idempotencyKey === undefined ? undefined : keyOf(caller, idempotencyKey, request);
    const known = key && (await findReplay(db, key, clock.now()));
    if (known !== undefined) return replay(call, known);

    return this.accept(call, { ...(await checkRequest(this.#parts, call, request)), key, within });
  }

  /**
   * Makes a task durable and queues it. The request MUST have been checked.
   * @throws Problem as `acceptTask` does
   */
  accept(call: Call, request: NewTaskRequest): Promise<DispatchResult> {
    const begin = (queued: QueuedTask, run: EarlyRun): boolean =>
      this.#scheduler.start(queued, () => this.#run(queued, run));
    const accepted = { scheduler: this.#scheduler, draining: this.#draining.signal, begin };
    return acceptTask(this.#parts, accepted, call, request);
  }

  /** @throws Problem 404 `not_found`, also if the task belongs to a different agent from the caller's agent */
  async get(caller: Caller, id: string): Promise<Task> {
    return this.#shown(await this.#find(caller, id, findTask));
  }

  /** Like `get`, without the task's texts. */
  facts(caller: Caller, id: string): Promise<TaskFacts> {
    return this.#find(caller, id, findTaskFacts);
  }

  /** Names a task and its agent in a call's entry. The agent is left out if the row was changed. */
  async name(call: Call, task: TaskFacts): Promise<void> {
    const isRunning = this.#runs.get(task.id)?.task?.agent === task.agent;
    const agent = isRunning ? task.agent : await provenAgent(this.#parts, task);
    call.about({ task: task.id, ...(agent === undefined ? {} : { agent }) });
  }

  /** @throws LedgerChanged if a finished task's row contradicts the ledger */
  requireProvenEnd(task: Task): Promise<void> {
    return requireProvenEnd(this.#parts, task);
  }

  async list(
    caller: Caller,
    filter: TaskFilter,
    limit: number,
    before: string | undefined,
  ): Promise<TaskPage> {
    const own = caller.agent ? { agentId: caller.agent.id } : {};
    const page = await listTasks(this.#parts.db, caller.workspaceId, { ...filter, ...own }, limit, before);
    if (this.#shownEnds.size === 0) return page;
    return { ...page, tasks: page.tasks.map((task) => this.#shown(task)) };
  }

  /** Reads the task's events after the id `after`, for one reader. */
  read(task: Pick<Task, "workspaceId" | "id">, after: number, memory?: EventMemory): EventReader {
    return this.#parts.hub.read(task.workspaceId, task.id, after, memory);
  }

  /**
   * Cancels a task and returns it as it ended. If the store cannot be written, the task is cancelled nevertheless;
   * its end and the call's entry are written later.
   * @throws Problem 409 `task_finished`
   */
  async cancel(call: Call, id: string): Promise<Task> {
    const { caller } = call;
    const task = await this.#orRunning(caller, id, findTaskFacts);
    await this.name(call, task);
    if (isFinal(task.status)) throw finished(task);
    const decision = await call.decide("cancel", this.#parts.clock);
    const interruption = new TaskInterruption("cancelled", decision.decidedAt, decision);
    const queued = { workspaceId: task.workspaceId, taskId: id, agentId: task.agentId };
    const deferred = await this.#interrupt(queued, interruption);
    if (deferred) {
      // Another caller had already ended it, and that caller's decision is written with its end.
      if (deferred !== interruption) await recordLate(call, decision);
      return this.#shown(await this.#orRunning(caller, id, findTask));
    }
    const after = await this.get(caller, id);
    if (!isFinal(after.status)) throw this.#stopping.signal.aborted ? draining() : notCancelled();
    // It had finished before it was cancelled.
    if (after.status !== "cancelled") throw finished(after);
    return after;
  }

  /**
   * Cancels all queued and running tasks of an agent. Resolves when the ends are written, or the store has refused
   * them.
   */
  async stopAgent(workspaceId: number, agent: Pick<Agent, "id">): Promise<void> {
    const waiting = this.#scheduler.waitingOf(workspaceId, agent.id);
    const running = this.#scheduler.runningOf(workspaceId, agent.id);
    const awaiting = this.#restingIn(workspaceId).filter(({ agentId }) => agentId === agent.id);
    await this.#endAll("agent_stopped", [...running, ...waiting, ...awaiting]);
  }

  /** Like `stopAgent`, for a whole workspace. */
  async stopWorkspace(workspaceId: number): Promise<void> {
    const running = this.#scheduler.runningIn(workspaceId);
    const waiting = this.#scheduler.waitingIn(workspaceId);
    await this.#endAll("workspace_stopped", [...running, ...waiting, ...this.#restingIn(workspaceId)]);
  }

  #restingIn(workspaceId: number): QueuedTask[] {
    return [...this.#resting.values()].filter((queued) => queued.workspaceId === workspaceId);
  }

  async #endAll(reason: "agent_stopped" | "workspace_stopped", tasks: readonly QueuedTask[]): Promise<void> {
    const now = this.#parts.clock.now();
    await Promise.all(tasks.map((queued) => this.#interrupt(queued, new TaskInterruption(reason, now))));
  }

  /**
   * Resolves when the ends of all tasks stopped in a workspace, or of one of its agents, are written. Until then,
   * after a crash, only the stop itself would keep these tasks from running again.
   * @throws StoreUnavailable if the store refuses one of them
   */
  async endsWritten(workspaceId: number, agentId: number | null): Promise<void> {
    const runs = [...this.#scheduler.runningIn(workspaceId)].filter(
      ({ taskId, ...run }) => (agentId === null || run.agentId === agentId) && this.isEnding(taskId),
    );
    const ends = [
      ...this.#endings.of(workspaceId, agentId).map(({ done }) => done),
      ...runs.map(({ taskId }) => this.#scheduler.ended(taskId)),
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
  async resumeTask(queued: QueuedTask): Promise<void> {
    // The run that requested approval may still be ending.
    await this.#scheduler.ended(queued.taskId);
    if (!this.#resting.delete(queued.taskId)) return;
    if (this.#stopping.signal.aborted) return;
    this.#scheduler.enqueue(queued);
  }

  /** Whether a task has been ended but its end is still being written. */
  isEnding(taskId: string): boolean {
    const run = this.#runs.get(taskId);
    const isEnded = run !== undefined && (interruptionOf(run.control.signal)?.ending ?? null) !== null;
    return isEnded || this.#endings.find(taskId) !== undefined;
  }

  /** Starts tasks that may start after a workspace's limits have changed. */
  limitsChanged(): void {
    this.#scheduler.pump();
  }

  async #find<Found extends TaskFacts>(
    { workspaceId, agent }: Caller,
    id: string,
    find: FindTask<Found>,
    sql: Sql = this.#parts.db,
  ): Promise<Found> {
    const task = isId("task", id) ? await find(sql, workspaceId, id) : undefined;
    if (!task || (agent && agent.id !== task.agentId)) throw noTask(id);
    return task;
  }

  /** The task as stored, for a cancel. If the store cannot be read, a running task is found in memory. */
  async #orRunning<Found extends TaskFacts>(
    caller: Caller,
    id: string,
    find: FindTask<Found>,
  ): Promise<Found | Task> {
    try {
      return await this.#find(caller, id, find, this.#parts.db.urgent);
    } catch (error) {
      const task = this.#runs.get(id)?.task;
      if (!(error instanceof StoreUnavailable) || task?.workspaceId !== caller.workspaceId) throw error;
      if (caller.agent && caller.agent.id !== task.agentId) throw noTask(id);
      return task;
    }
  }

  #shown(task: Task): Task {
    const end = isFinal(task.status) ? undefined : this.#shownEnds.get(task.id);
    return end ? { ...task, ...end, finishedAt: notBefore(task, end.finishedAt) } : task;
  }

  /**
   * Ends a waiting or running task.
   * @returns null once its end is written or left to the next start. If the store has refused the end, which is then
   *   written later, the interruption that counts
   */
  async #interrupt(queued: QueuedTask, interruption: TaskInterruption): Promise<TaskInterruption | null> {
    const { workspaceId, taskId } = queued;
    const isQuiet = this.#scheduler.remove(workspaceId, taskId) || this.#resting.delete(taskId);
    const pending = isQuiet
      ? this.#endings.add(queued, interruption)
      : (this.#running(taskId) ?? this.#endings.find(taskId));
    if (!pending) return null;
    const { control, done } = pending;
    control.abort(interruption);
    const counts = interruptionOf(control.signal) ?? interruption;
    const isWritten = await Promise.race([done.then(() => true), counts.deferred.then(() => false)]);
    // The run reached a person's decision at the same moment and missed the interruption.
    if (isWritten && counts.ending && this.#isOpen(queued, control)) return this.#interrupt(queued, counts);
    if (isWritten || !counts.ending) return null;
    this.#shownEnds.set(taskId, { ...counts.ending, finishedAt: counts.at });
    void done.then(() => this.#shownEnds.delete(taskId));
    return counts;
  }

  /** Whether it waits, or runs again, after the run that `control` belonged to. */
  #isOpen({ workspaceId, taskId }: QueuedTask, control: AbortController): boolean {
    const run = this.#runs.get(taskId);
    if (run) return run.control !== control;
    return this.#resting.has(taskId) || this.#scheduler.isWaiting(workspaceId, taskId);
  }

  #running(taskId: string): PendingEnd | undefined {
    const run = this.#runs.get(taskId);
    return run && { control: run.control, done: this.#scheduler.ended(taskId) };
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
      if (how !== "ended") this.#resting.set(queued.taskId, queued);
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

/** Records only the decision, since it has already been carried out. */
async function recordLate(call: Call, decision: PersonDecision): Promise<void> {
  await call.commitDecision(decision, async () => {});
}
