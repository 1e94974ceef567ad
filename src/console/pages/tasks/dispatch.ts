import type { Task } from "../../../http/api.ts";
import { type AnswerOf, type CallOptions, call } from "../../api/client.ts";
import type { TaskMessage } from "./asked.ts";
import type { Attachment } from "./attachments.tsx";

export type TaskRequest = CallOptions<"POST /v1/tasks">["body"];

const KEY_BYTES = 16;

/**
 * Dispatches tasks so that a retry after a lost answer does not create a second task: an unchanged request keeps its
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
  /** Messages to repeat as they are, in place of a prompt and attachments. */
  readonly messages: readonly TaskMessage[] | null;
  readonly attachments: readonly Attachment[];
  /** The id of the task whose conversation is continued. */
  readonly continues: string | null;
  /** The schema of the output as text. Null: the output is text. */
  readonly schema: string | null;
  /** Empty: the agent's lowest tier. */
  readonly tier: string;
  readonly tools: readonly string[];
  readonly metadata: readonly (readonly [key: string, value: string])[];
}

export const EMPTY_DRAFT: TaskDraft = {
  agent: "",
  prompt: "",
  messages: null,
  attachments: [],
  continues: null,
  schema: null,
  tier: "",
  tools: [],
  metadata: [],
};

/** A draft that repeats a task. */
export function draftOf(task: Task): TaskDraft {
  return {
    agent: task.agent,
    prompt: task.prompt ?? "",
    messages: task.messages ?? null,
    attachments: [],
    continues: task.continues ?? null,
    schema: task.output_schema ? JSON.stringify(task.output_schema, null, 2) : null,
    tier: String(task.tier),
    tools: task.tools,
    metadata: Object.entries(task.metadata),
  };
}

/** A draft that continues a task's conversation. */
export function draftAfter({ id, agent, tier, tools }: Task): TaskDraft {
  return { ...EMPTY_DRAFT, agent, tier: String(tier), tools, continues: id };
}

/** Whether two drafts are the same. Files are compared by their names and sizes. */
export function isSameDraft(one: TaskDraft, other: TaskDraft): boolean {
  return withoutData(one) === withoutData(other);
}

function withoutData(draft: TaskDraft): string {
  const { messages, ...rest } = draft;
  return JSON.stringify({ ...rest, messages: messages?.length }, (key, value) =>
    key === "data" ? undefined : value,
  );
}

/** @param schema the parsed schema of the output */
export function requestOf(
  { agent, tier, tools, metadata, continues, ...asked }: TaskDraft,
  schema: Record<string, unknown> | undefined,
): TaskRequest {
  const pairs = metadata.filter(([key]) => key !== "");
  return {
    agent,
    ...askedOf(asked),
    ...(continues === null ? {} : { continues }),
    ...(schema ? { output_schema: schema } : {}),
    ...(tier === "" ? {} : { tier: Number(tier) }),
    ...(tools.length === 0 ? {} : { tools: [...tools] }),
    ...(pairs.length === 0 ? {} : { metadata: Object.fromEntries(pairs) }),
  };
}

function askedOf({
  prompt,
  messages,
  attachments,
}: Pick<TaskDraft, "prompt" | "messages" | "attachments">): Pick<TaskRequest, "prompt" | "messages"> {
  // The whole task was read, so its files have their data.
  if (messages) return { messages: messages as NonNullable<TaskRequest["messages"]> };
  if (attachments.length === 0) return { prompt };
  const files = attachments.map(({ mediaType, data }) => ({
    type: mediaType.startsWith("image/") ? ("image" as const) : ("file" as const),
    media_type: mediaType,
    data,
  }));
  const text = prompt === "" ? [] : [{ type: "text" as const, text: prompt }];
  return { messages: [{ role: "user", content: [...files, ...text] }] };
}
