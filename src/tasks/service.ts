import type { Caller } from "../access/caller.ts";
import { pause } from "../base/clock.ts";
import { isId } from "../base/ids.ts";
import type { Call, PersonDecision } from "../gate/call.ts";
import type { LimitNotices } from "../gate/notices.ts";
import { type Sql, StoreUnavailable } from "../store/db.ts";
import { ClaimedTasks } from "./claims/claimed-tasks.ts";
import type { ClaimedWork, OtherNodes } from "./claims/claimed-work.ts";
import { TaskInterruption } from "./ending/interruption.ts";
import type { EventReader } from "./events/hub.ts";
import type { EventMemory } from "./events/stored-events.ts";
import { NodeTasks } from "./node-tasks.ts";
import type { TaskParts } from "./parts.ts";
import { acceptTask, type DispatchResult, draining, type NewTaskRequest, replay } from "./queue/accept.ts";
import { checkRequest, type DispatchRequest } from "./queue/dispatch-request.ts";
import { findReplay, keyOf } from "./queue/idempotency.ts";
import type { QueuedTask, Scheduler, SchedulerParts } from "./queue/scheduler.ts";
import { provenAgent, requireProvenEnd } from "./recovery/proven-row.ts";
import { recoverTasks } from "./recovery/recover.ts";
import { agentForbidden, finished, noTask, notCancelled } from "./refusals.ts";
import type { TaskFilter } from "./rows/task-ids.ts";
import { findTask, findTaskFacts, listTasks, type TaskPage } from "./rows/tasks.ts";
import type { EarlyRun } from "./run/first-write.ts";
import { isFinal, type Task, type TaskFacts } from "./task.ts";

export interface TaskServiceOptions {
  readonly nodeCeiling: number;
  readonly queueLimit: number;
  readonly notices: LimitNotices;
  readonly otherNodes: OtherNodes;
  readonly openQueues: SchedulerParts["openOthers"];
}

/** How often a cancel looks for the node that has the task: it may move at the same moment. */
const CANCEL_ATTEMPTS = 3;
/** Between attempts to carry out a cancel on a task that another node has. */
const ELSEWHERE_MS = 500;

type FindTask<Found extends TaskFacts> = (
  sql: Pick<Sql, "all" | "get">,
  workspaceId: number,
  id: string,
) => Promise<Found | undefined>;

/** Manages tasks from the request to their end. */
export class TaskService {
  readonly #parts: TaskParts;
  readonly #open: NodeTasks;
  readonly #claimed: ClaimedTasks;
  readonly #others: OtherNodes;
  /** Ids of tasks that are being stored. */
  readonly #arriving = new Set<string>();

  constructor(parts: TaskParts, options: TaskServiceOptions) {
    const { nodeCeiling, queueLimit, notices, otherNodes, openQueues } = options;
    this.#parts = parts;
    this.#open = new NodeTasks(parts, {
      ...{ nodeCeiling, queueLimit, openOthers: openQueues },
      workspace: (id) => parts.workspaces.get(id),
      overLimit: (workspace) => {
        notices.exceeded(workspace, "tasks").catch((error: unknown) => {
          parts.log.error("a limit notice cannot be written", { workspace: workspace.name, error });
        });
      },
    });
    this.#claimed = new ClaimedTasks(parts, this.#open, this.#arriving);
    this.#others = otherNodes;
    parts.signals.endLost.listen(({ queued, interruption }) => void this.#endElsewhere(queued, interruption));
  }

  /** The tasks of this node, which others may take over. */
  get claimed(): ClaimedWork {
    return this.#claimed;
  }

  get scheduler(): Scheduler {
    return this.#open.scheduler;
  }

  /**
   * Recovers the tasks of an earlier process, or of nodes that have left. Called once, before requests are served.
   * @param endReason why tasks that had not ended are ended now. Null: they continue
   */
  async start(endReason: string | null): Promise<void> {
    if (this.#parts.claims.isShared) return this.#others.start();
    const { workspaces } = this.#parts;
    const waiting: QueuedTask[] = [];
    for (const { id } of workspaces.list()) {
      const recovered = await recoverTasks(this.#parts, id, this.#open.stopping, null, endReason);
      waiting.push(...this.#open.add(id, recovered));
    }
    this.scheduler.enqueueAll(waiting);
  }

  /**
   * Refuses new tasks and resolves when nothing runs any more. Each run completes its current call, and is returned
   * to the queue to be resumed by another node or at the next start.
   */
  async drain(): Promise<void> {
    this.#others.stop();
    const drained = this.#open.drain();
    if (this.#parts.claims.isShared) await this.#claimed.releaseQuiet();
    await drained;
    // Calls of the last runs may wait for a person.
    if (this.#parts.claims.isShared) await this.#claimed.releaseQuiet();
  }

  /**
   * Refuses new tasks, interrupts running ones (another node or a later start resumes them), ends the streams of waiting
   * ones, and resolves when nothing writes any more.
   */
  async stop(): Promise<void> {
    this.#others.stop();
    await this.#open.stop();
    this.#others.close();
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
    if (this.#open.draining.aborted) throw draining();
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
    const begin = (queued: QueuedTask, run: EarlyRun): boolean => this.#open.begin(queued, run);
    const { scheduler, draining: signal } = this.#open;
    const accepted = { scheduler, draining: signal, arriving: this.#arriving, begin };
    return acceptTask(this.#parts, accepted, call, request);
  }

  /** @throws Problem 404 `not_found`, also if the task belongs to a different agent from the caller's agent */
  async get(caller: Caller, id: string): Promise<Task> {
    return this.#open.shown(await this.#find(caller, id, findTask));
  }

  /** Like `get`, without the task's texts. */
  facts(caller: Caller, id: string): Promise<TaskFacts> {
    return this.#find(caller, id, findTaskFacts);
  }

  /** Names a task and its agent in a call's entry. The agent is left out if the row was changed. */
  async name(call: Call, task: TaskFacts): Promise<void> {
    const isRunning = this.#open.running(task.id)?.agent === task.agent;
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
    return { ...page, tasks: page.tasks.map((task) => this.#open.shown(task)) };
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
    for (let attempt = 1; ; attempt++) {
      await this.#others.bring(task.workspaceId, id);
      const deferred = await this.#open.interrupt(queued, interruption);
      if (deferred) {
        // Another caller had already ended it, and that caller's decision is written with its end.
        if (deferred !== interruption) await recordLate(call, decision);
        return this.#open.shown(await this.#orRunning(caller, id, findTask));
      }
      const after = await this.get(caller, id);
      if (isFinal(after.status)) {
        // It had finished before it was cancelled.
        if (after.status !== "cancelled") throw finished(after);
        return after;
      }
      if (this.#open.stopping.aborted) throw draining();
      if (!this.#parts.claims.isShared || attempt === CANCEL_ATTEMPTS) throw notCancelled();
    }
  }

  /**
   * Cancels all open tasks of an agent, or of a whole workspace if `agentId` is null. Resolves when the ends of this
   * node's tasks are written, or the store has refused them.
   */
  async endStopped(workspaceId: number, agentId: number | null): Promise<void> {
    this.#others.tellStopped(workspaceId, agentId);
    await Promise.all([
      this.#open.endStopped(workspaceId, agentId),
      this.#others.endFree(workspaceId, agentId),
    ]);
  }

  /**
   * Resolves when the ends of all tasks stopped in a workspace, or of one of its agents, are written. Until then,
   * after a crash, only the stop itself would keep these tasks from running again.
   * @throws StoreUnavailable if the store refuses one of them
   */
  async endsWritten(workspaceId: number, agentId: number | null): Promise<void> {
    await this.#open.endsWritten(workspaceId, agentId);
    await this.#others.endsWritten(workspaceId, agentId);
  }

  /** Resumes a task that waited for a person and is queued in the store. */
  resumeTask(queued: QueuedTask): Promise<void> {
    return this.#open.resume(queued);
  }

  /** Whether a task has been ended but its end is still being written. */
  isEnding(taskId: string): boolean {
    return this.#open.isEnding(taskId);
  }

  /**
   * Ends a task that was cancelled while this node was cut off, and that another node has taken over since. The cancel was
   * answered, so it holds. Never rejects.
   */
  async #endElsewhere(queued: QueuedTask, interruption: TaskInterruption): Promise<void> {
    const { workspaceId, taskId } = queued;
    const { clock, db, log } = this.#parts;
    const facts = { task: taskId, ...interruption.decision?.facts() };
    while (!this.#open.stopping.aborted) {
      try {
        await this.#open.left(taskId);
        await this.#others.bring(workspaceId, taskId);
        await this.#open.interrupt(queued, interruption);
        const task = await findTaskFacts(db.urgent, workspaceId, taskId);
        if (!task || isFinal(task.status)) {
          if (task?.status !== "cancelled")
            log.error("a task ended elsewhere before its cancel was written", facts);
          return;
        }
        if (this.#open.isEnding(taskId)) return;
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) {
          log.error("a cancel cannot be carried out on the node that has taken the task over", {
            ...facts,
            error,
          });
          return;
        }
      }
      await pause(ELSEWHERE_MS, clock, this.#open.stopping).catch(() => {});
    }
    log.error("a cancel is lost: another node has taken the task over", facts);
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
      const task = this.#open.running(id);
      if (!(error instanceof StoreUnavailable) || task?.workspaceId !== caller.workspaceId) throw error;
      if (caller.agent && caller.agent.id !== task.agentId) throw noTask(id);
      return task;
    }
  }
}

/** Records only the decision, since it has already been carried out. */
async function recordLate(call: Call, decision: PersonDecision): Promise<void> {
  await call.commitDecision(decision, async () => {});
}
