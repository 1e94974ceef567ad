import type { Agent } from "../../access/agents.ts";
import type { ToolCall } from "../../agents/index.ts";
import { Problem } from "../../base/errors.ts";
import type { Call } from "../../gate/call.ts";
import type { Db, Tx } from "../../store/db.ts";
import { readInput, type StoredInput } from "../input/task-input.ts";
import type { TaskParts } from "../parts.ts";
import { insertTask, type NewTask } from "../rows/tasks.ts";
import { type EarlyRun, FirstWrite, JoinRefused } from "../run/first-write.ts";
import { saveOwnCall } from "../run/progress.ts";
import type { Task } from "../task.ts";
import { findReplay, type IdempotencyKey, keepKey } from "./idempotency.ts";
import type { QueuedTask, Scheduler } from "./scheduler.ts";

/** A new task's request. Everything is checked except what depends on the moment of writing. */
export interface NewTaskRequest {
  readonly agent: Agent;
  readonly tier: number;
  readonly tools: readonly string[];
  readonly metadata: Readonly<Record<string, string>>;
  /** The task's input, stored as the intent's payload. */
  readonly input: StoredInput;
  /** The id of the task whose conversation it continues. */
  readonly continues?: string | undefined;
  readonly key?: IdempotencyKey | undefined;
  /** The single tool call that the task consists of; no model is called. */
  readonly call?: ToolCall;
  /** Runs inside the transaction that creates the task. If it throws, the task is refused. */
  readonly within?: ((tx: Tx, id: string) => Promise<void>) | undefined;
}

export interface DispatchResult {
  readonly id: string;
  /** Whether the idempotency key had already created this task. */
  readonly replayed: boolean;
}

/** Where accepted tasks go. */
export interface AcceptedTasks {
  readonly scheduler: Pick<Scheduler, "reserve">;
  /** Aborts when no task is accepted any more. */
  readonly draining: AbortSignal;
  /** Contains the ids of tasks that are being stored. */
  readonly arriving: Set<string>;
  /** Starts a run if a slot is free. Returns false if the task has to wait in the queue. */
  begin(queued: QueuedTask, run: EarlyRun): boolean;
}

/** Id of the first event after `task.created`. */
const FIRST_EVENT = 2;

/**
 * Makes a task durable, together with the intent that is its evidence, and queues it.
 * @throws Problem 429 `queue_full`, 409 `agent_stopped`, 503 `draining`; then nothing is written
 */
export async function acceptTask(
  parts: Pick<TaskParts, "agents" | "claims" | "clock" | "db" | "hub" | "ids" | "signals">,
  { scheduler, draining: signal, arriving, begin }: AcceptedTasks,
  call: Call,
  request: NewTaskRequest,
): Promise<DispatchResult> {
  const { agents, claims, clock, db, hub, ids, signals } = parts;
  const { workspaceId, actor } = call.caller;
  const { agent, key } = request;
  const place = scheduler.reserve(workspaceId);
  const id = ids("task");
  call.about({ task: id });
  // Opened before the task becomes visible, so that every caller who finds the task also finds its events.
  hub.open(id, FIRST_EVENT, call.via);
  const queued = { workspaceId, taskId: id, agentId: agent.id };
  const created: NewTask = {
    id,
    agentId: agent.id,
    agent: agent.name,
    tier: request.tier,
    tools: request.tools,
    metadata: request.metadata,
    inputForm: request.input.form,
    continues: request.continues ?? null,
    createdBy: actor,
    createdAt: clock.now(),
  };
  let early: EarlyRun | null = null;
  const store = (first: FirstWrite | null): Promise<string | undefined> =>
    call.commit(async (tx, record) => {
      if (signal.aborted) throw draining();
      const existing = key && (await findReplay(tx, key, clock.now()));
      if (existing !== undefined) {
        await record({ task: existing, detail: { replayed: 1 } });
        return existing;
      }
      // Read the agent again: it may have been stopped since the request was checked.
      if (!(await agents.isActive(tx, workspaceId, agent.id))) {
        throw new Problem("agent_stopped", `The agent ${agent.name} is stopped.`);
      }
      const dispatchSeq = await record({ phase: "intent", outcome: "allowed", input: request.input.text });
      insertTask(tx, workspaceId, created, dispatchSeq);
      claims.add(tx, workspaceId, id);
      if (early) early.task.dispatchSeq = dispatchSeq;
      if (request.call) saveOwnCall(tx, { workspaceId, id }, request.call);
      if (key) keepKey(tx, key, id, created.createdAt);
      await request.within?.(tx, id);
      tx.onCommit(() => signals.changed.emit({ workspaceId, task: id }));
      await first?.write(tx);
      return undefined;
    });
  let existing: string | undefined;
  arriving.add(id);
  try {
    early = beginEarly(db, begin, queued, created, request);
    await early?.first.ready();
    existing = await store(early?.first ?? null).catch((error: unknown) => {
      if (!(error instanceof JoinRefused)) throw error;
      return store(null);
    });
  } catch (error) {
    place.release();
    hub.close(id);
    early?.first.refused();
    throw error;
  } finally {
    // What follows waits for nothing.
    arriving.delete(id);
  }
  if (existing !== undefined) {
    place.release();
    hub.close(id);
    early?.first.refused();
    return { id: existing, replayed: true };
  }
  if (early) {
    place.release();
    early.first.stored();
  } else {
    place.enqueue(queued);
  }
  // The task was written while the process was stopping: the next start runs it, and its readers resume there.
  if (signal.aborted && !early) hub.find(id)?.close(null);
  return { id, replayed: false };
}

/** Begins the run of a new task, if a slot is free. A single tool call is read from the store when it begins. */
function beginEarly(
  db: Db,
  begin: AcceptedTasks["begin"],
  queued: QueuedTask,
  created: NewTask,
  { call, input }: NewTaskRequest,
): EarlyRun | null {
  if (call) return null;
  const run = { task: newTask(queued.workspaceId, created, input), first: new FirstWrite(db) };
  return begin(queued, run) ? run : null;
}

/** The task as it would be read from its new row. */
function newTask(workspaceId: number, created: NewTask, input: StoredInput): Task {
  return {
    ...created,
    dispatchSeq: 0,
    workspaceId,
    input: readInput(input),
    status: "queued",
    attempts: 0,
    output: null,
    model: null,
    credits: 0,
    inputTokens: 0,
    outputTokens: 0,
    steps: 0,
    error: null,
    toolsCalled: [],
    openModelCall: null,
    openReserved: 0,
    eventCeiling: 0,
    startedAt: null,
    finishedAt: null,
  };
}

/** Answers a request whose idempotency key has already created a task. */
export async function replay(call: Call, id: string): Promise<DispatchResult> {
  call.about({ task: id, detail: { replayed: 1 } });
  await call.record("succeeded");
  return { id, replayed: true };
}

export function draining(): Problem {
  return new Problem("draining", "The server is shutting down and accepts no new tasks.", {
    headers: { "Retry-After": "5" },
  });
}
