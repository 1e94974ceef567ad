import type { Agent } from "../access/agents.ts";
import type { Caller } from "../access/caller.ts";
import { Problem } from "../base/errors.ts";
import { isId } from "../base/ids.ts";
import type { Call } from "../gate/call.ts";
import type { LimitNotices } from "../gate/notices.ts";
import { checkBudget } from "./budget.ts";
import type { TaskFilter } from "./choose.ts";
import type { EventReader } from "./events.ts";
import { findReplay, fingerprint, type IdempotencyKey, keepKey } from "./idempotency.ts";
import type { TaskParts } from "./parts.ts";
import { recoverTasks } from "./recover.ts";
import { cancelledEnding, endTask, type Interruption, runTask, stoppedEnding, takeUp } from "./runner.ts";
import { type Queued, Scheduler } from "./scheduler.ts";
import { findTask, insertTask, listTasks, type TaskPage } from "./store.ts";
import { isFinal, type Task } from "./task.ts";

export interface DispatchRequest {
  readonly agent: string;
  readonly prompt: string;
  readonly tier?: number;
  readonly tools?: readonly string[];
  readonly metadata?: Readonly<Record<string, string>>;
}

export interface Dispatched {
  readonly id: string;
  /** The idempotency key had made this task before. */
  readonly replayed: boolean;
}

export interface TaskServiceOptions {
  readonly nodeCeiling: number;
  readonly queueLimit: number;
  readonly notices: LimitNotices;
}

/** Id of the first event after `task.created`. */
const FIRST_EVENT = 2;

/** Tasks, from the request to their end. */
export class TaskService {
  readonly #parts: TaskParts;
  readonly #scheduler: Scheduler;
  readonly #runs = new Map<string, AbortController>();
  /** Tasks taken out of the queue whose end is being written. */
  readonly #ending = new Map<string, Promise<void>>();
  /** Aborts when the process is told to stop: no new task is taken, and what cannot be written is left to the next start. */
  readonly #stopping = new AbortController();

  constructor(parts: TaskParts, options: TaskServiceOptions) {
    this.#parts = parts;
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

  /** Takes up what an earlier process left. Called once, before the doors open. */
  async start(): Promise<void> {
    for (const workspace of this.#parts.workspaces.list()) {
      for (const queued of await recoverTasks(this.#parts, workspace.id, this.#stopping.signal))
        this.#scheduler.enqueue(queued);
    }
  }

  /**
   * Refuses new tasks, breaks off what runs (a later start takes it up again), ends the streams of what waits, and resolves
   * when nothing writes any more.
   */
  async stop(): Promise<void> {
    this.#stopping.abort();
    for (const run of this.#runs.values()) run.abort("shutdown" satisfies Interruption);
    for (const { taskId } of this.#scheduler.allWaiting()) this.#parts.hub.find(taskId)?.close(null);
    await this.#scheduler.stop();
    while (this.#ending.size > 0) await Promise.all(this.#ending.values());
  }

  /**
   * Checks a request, makes it durable and queues it.
   * @throws Problem with each refusal of the contract, before anything is written.
   */
  async dispatch(
    call: Call,
    request: DispatchRequest,
    idempotencyKey: string | undefined,
  ): Promise<Dispatched> {
    const { caller } = call;
    const { workspaceId } = caller;
    const { agents, clock, db, door, hub, ids, tools, workspaces } = this.#parts;
    call.about({ agent: request.agent, ...(request.tier === undefined ? {} : { tier: request.tier }) });
    if (this.#stopping.signal.aborted) throw draining();
    if (caller.agent && caller.agent.name !== request.agent) {
      throw new Problem(
        "agent_forbidden",
        `This token acts as ${caller.agent.name} and may dispatch to it alone.`,
      );
    }
    const key = idempotencyKey === undefined ? undefined : keyOf(caller, idempotencyKey, request);
    const known = key && (await findReplay(db, key, clock.now()));
    if (known !== undefined) return replay(call, known);

    const agent = await agents.get(workspaceId, request.agent);
    if (agent.status === "stopped") throw new Problem("agent_stopped", `The agent ${agent.name} is stopped.`);
    const tier = request.tier ?? door.tiers.lowest(agent.tierPolicy);
    call.about({ tier });
    door.tiers.route(agent.tierPolicy, tier);
    const listed = request.tools ?? [];
    tools.find(workspaceId, listed, { tools: agent.tools, scopes: caller.scopes });
    await checkBudget(db, workspaces.get(workspaceId), agent, clock.now());

    const place = this.#scheduler.reserve(workspaceId);
    const id = ids("task");
    call.about({ task: id });
    // There before the task can be seen, so that whoever finds it also finds its events.
    hub.open(id, FIRST_EVENT);
    let raced: string | undefined;
    try {
      raced = await call.commit(async (tx, record) => {
        if (this.#stopping.signal.aborted) throw draining();
        const now = clock.now();
        const first = key && (await findReplay(tx, key, now));
        if (first !== undefined) {
          await record({ task: first, detail: { replayed: 1 } });
          return first;
        }
        // The agent as it is now: a stop that came in between holds.
        if (!(await agents.isActive(tx, workspaceId, agent.id))) {
          throw new Problem("agent_stopped", `The agent ${agent.name} is stopped.`);
        }
        const dispatchSeq = await record({ phase: "intent", outcome: "allowed", input: request.prompt });
        await insertTask(tx, workspaceId, {
          id,
          agentId: agent.id,
          agent: agent.name,
          tier,
          tools: listed,
          metadata: request.metadata ?? {},
          dispatchSeq,
          createdBy: caller.actor,
          createdAt: now,
        });
        if (key) await keepKey(tx, key, id, now);
        return undefined;
      });
    } catch (error) {
      place.release();
      hub.close(id);
      throw error;
    }
    if (raced !== undefined) {
      place.release();
      hub.close(id);
      return { id: raced, replayed: true };
    }
    place.enqueue({ workspaceId, taskId: id, agentId: agent.id });
    // It was written in the moment of the stop: the next start runs it, and its readers resume there.
    if (this.#stopping.signal.aborted) hub.find(id)?.close(null);
    return { id, replayed: false };
  }

  /** @throws Problem 404 `not_found`, also for a task of another agent than the one the caller acts as. */
  async get(caller: Caller, id: string): Promise<Task> {
    const task = isId("task", id) ? await findTask(this.#parts.db, caller.workspaceId, id) : undefined;
    if (!task || (caller.agent && caller.agent.id !== task.agentId)) {
      throw new Problem("not_found", `There is no task ${JSON.stringify(id)}.`);
    }
    return task;
  }

  async list(
    caller: Caller,
    filter: TaskFilter,
    limit: number,
    before: string | undefined,
  ): Promise<TaskPage> {
    const own = caller.agent ? { agentId: caller.agent.id } : {};
    return listTasks(this.#parts.db, caller.workspaceId, { ...filter, ...own }, limit, before);
  }

  /** The task's events after the id `after`, to be read by one reader. */
  read(task: Pick<Task, "workspaceId" | "id">, after: number): EventReader {
    return this.#parts.hub.read(task.workspaceId, task.id, after);
  }

  /**
   * Cancels a task and answers it as it ended.
   * @throws Problem 409 `task_finished`
   */
  async cancel(caller: Caller, id: string): Promise<Task> {
    const task = await this.get(caller, id);
    if (isFinal(task.status)) throw finished(task);
    await this.#interrupt({ workspaceId: task.workspaceId, taskId: id, agentId: task.agentId }, "cancelled");
    const after = await this.get(caller, id);
    if (!isFinal(after.status)) throw this.#stopping.signal.aborted ? draining() : notCancelled();
    // It had finished by itself before the cancel reached it.
    if (after.status !== "cancelled") throw finished(after);
    return after;
  }

  /** Cancels all that an agent has queued and running. */
  async stopAgent(workspaceId: number, agent: Pick<Agent, "id">): Promise<void> {
    const waiting = this.#scheduler.waitingOf(workspaceId, agent.id);
    const running = this.#scheduler.runningOf(workspaceId, agent.id);
    await Promise.all([...running, ...waiting].map((queued) => this.#interrupt(queued, "agent_stopped")));
  }

  /** Looks again at who may start, after a workspace's limits have changed. */
  limitsChanged(): void {
    this.#scheduler.pump();
  }

  async #interrupt(queued: Queued, reason: Interruption): Promise<void> {
    const { workspaceId, taskId } = queued;
    if (!this.#scheduler.remove(workspaceId, taskId)) {
      this.#runs.get(taskId)?.abort(reason);
      await this.#scheduler.ended(taskId);
      await this.#ending.get(taskId);
      return;
    }
    const ending = this.#endQueued(queued, reason).finally(() => this.#ending.delete(taskId));
    this.#ending.set(taskId, ending);
    await ending;
  }

  async #endQueued(queued: Queued, reason: Interruption): Promise<void> {
    const log = this.#parts.hub.find(queued.taskId);
    const task = await takeUp(this.#parts, queued, this.#stopping.signal);
    if (!log || !task) return;
    const ending = reason === "agent_stopped" ? stoppedEnding() : cancelledEnding();
    await endTask(this.#parts, task, log, ending, this.#stopping.signal);
  }

  async #run(queued: Queued): Promise<void> {
    const control = new AbortController();
    this.#runs.set(queued.taskId, control);
    try {
      await runTask(this.#parts, queued, control.signal, this.#stopping.signal);
    } finally {
      this.#runs.delete(queued.taskId);
    }
  }
}

async function replay(call: Call, id: string): Promise<Dispatched> {
  call.about({ task: id, detail: { replayed: 1 } });
  await call.record("succeeded");
  return { id, replayed: true };
}

function keyOf(caller: Caller, key: string, request: DispatchRequest): IdempotencyKey {
  return { workspaceId: caller.workspaceId, actor: caller.actor, key, fingerprint: fingerprint(request) };
}

function draining(): Problem {
  return new Problem("draining", "The server is shutting down and takes no new tasks.", {
    headers: { "Retry-After": "5" },
  });
}

function notCancelled(): Problem {
  return new Problem("internal", "The task's end could not be written, so it is not known to be cancelled.");
}

function finished(task: Task): Problem {
  return new Problem("task_finished", `The task has ${task.status} already.`);
}
