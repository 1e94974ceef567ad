import type { Task } from "../../../http/api.ts";
import { type AnswerOf, type CallOptions, call } from "../../api/client.ts";

export type TaskRequest = CallOptions<"POST /v1/tasks">["body"];

const KEY_BYTES = 16;

/**
 * Dispatches tasks so that a retry after a lost answer creates no second task: an unchanged request keeps its
 * idempotency key.
 */
export class Dispatcher {
  #sent: { readonly body: string; readonly key: string } | null = null;

  /** @throws ApiProblem */
  async dispatch(body: TaskRequest): Promise<AnswerOf<"POST /v1/tasks">> {
    const text = JSON.stringify(body);
    if (this.#sent?.body !== text) this.#sent = { body: text, key: newKey() };
    return call("POST /v1/tasks", { body, headers: { "idempotency-key": this.#sent.key } });
  }
}

/** `crypto.randomUUID` exists only on https and localhost. */
function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(KEY_BYTES));
  return `console-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** The form's content. */
export interface TaskDraft {
  readonly agent: string;
  readonly prompt: string;
  /** Empty: the agent's lowest tier. */
  readonly tier: string;
  readonly tools: readonly string[];
  readonly metadata: readonly (readonly [key: string, value: string])[];
}

export const EMPTY_DRAFT: TaskDraft = { agent: "", prompt: "", tier: "", tools: [], metadata: [] };

/** A draft that repeats a task. */
export function draftOf(task: Task): TaskDraft {
  return {
    agent: task.agent,
    prompt: task.prompt ?? "",
    tier: String(task.tier),
    tools: task.tools,
    metadata: Object.entries(task.metadata),
  };
}

export function requestOf({ agent, prompt, tier, tools, metadata }: TaskDraft): TaskRequest {
  const pairs = metadata.filter(([key]) => key !== "");
  return {
    agent,
    prompt,
    ...(tier === "" ? {} : { tier: Number(tier) }),
    ...(tools.length === 0 ? {} : { tools: [...tools] }),
    ...(pairs.length === 0 ? {} : { metadata: Object.fromEntries(pairs) }),
  };
}
