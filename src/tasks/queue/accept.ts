import type { Agent } from "../../access/agents.ts";
import type { ToolCall } from "../../agents/index.ts";
import { Problem } from "../../base/errors.ts";
import type { Call } from "../../gate/call.ts";
import type { Tx } from "../../store/db.ts";
import type { StoredInput } from "../input/task-input.ts";
import type { TaskParts } from "../parts.ts";
import { insertTask } from "../rows/tasks.ts";
import { saveOwnCall } from "../run/progress.ts";
import { findReplay, type IdempotencyKey, keepKey } from "./idempotency.ts";
import type { Scheduler } from "./scheduler.ts";

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

/** Id of the first event after `task.created`. */
const FIRST_EVENT = 2;

/**
 * Makes a task durable, together with the intent that is its evidence, and queues it.
 * @throws Problem 429 `queue_full`, 409 `agent_stopped`, 503 `draining`; then nothing is written
 */
export async function acceptTask(
  parts: Pick<TaskParts, "agents" | "clock" | "hub" | "ids" | "signals">,
  { scheduler, draining: signal }: { readonly scheduler: Scheduler; readonly draining: AbortSignal },
  call: Call,
  request: NewTaskRequest,
): Promise<DispatchResult> {
  const { agents, clock, hub, ids, signals } = parts;
  const { workspaceId, actor } = call.caller;
  const { agent, key } = request;
  const place = scheduler.reserve(workspaceId);
  const id = ids("task");
  call.about({ task: id });
  // Opened before the task becomes visible, so that every caller who finds the task also finds its events.
  hub.open(id, FIRST_EVENT, call.via);
  let raced: string | undefined;
  try {
    raced = await call.commit(async (tx, record) => {
      if (signal.aborted) throw draining();
      const now = clock.now();
      const first = key && (await findReplay(tx, key, now));
      if (first !== undefined) {
        await record({ task: first, detail: { replayed: 1 } });
        return first;
      }
      // Read the agent again: it may have been stopped since the request was checked.
      if (!(await agents.isActive(tx, workspaceId, agent.id))) {
        throw new Problem("agent_stopped", `The agent ${agent.name} is stopped.`);
      }
      const dispatchSeq = await record({ phase: "intent", outcome: "allowed", input: request.input.text });
      await insertTask(tx, workspaceId, {
        id,
        agentId: agent.id,
        agent: agent.name,
        tier: request.tier,
        tools: request.tools,
        metadata: request.metadata,
        inputForm: request.input.form,
        continues: request.continues ?? null,
        dispatchSeq,
        createdBy: actor,
        createdAt: now,
      });
      if (request.call) await saveOwnCall(tx, { workspaceId, id }, request.call);
      if (key) await keepKey(tx, key, id, now);
      await request.within?.(tx, id);
      tx.onCommit(() => signals.changed.emit({ workspaceId, task: id }));
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
  // The task was written while the process was stopping: the next start runs it, and its readers resume there.
  if (signal.aborted) hub.find(id)?.close(null);
  return { id, replayed: false };
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
