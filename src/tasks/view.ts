import { optionalTimestamp, timestamp } from "../base/clock.ts";
import { toCredits } from "../base/credits.ts";
import { outputValue } from "./input/output-schema.ts";
import type { InputMessage, InputPart } from "./input/task-input.ts";
import type { Task } from "./task.ts";

/** A part of a message. The data of a file may be replaced by its size in bytes. */
export type PartView =
  | InputPart
  | { readonly type: "image" | "file"; readonly media_type: string; readonly size: number };

/** A task as shown to its reader (contract, section 3), with the data of its files. */
export function viewTask(task: Task) {
  return viewWith(task, (part) => part);
}

/** A task as shown in lists and in `task.finished`, with the size of each file in place of its data. */
export function viewTaskBriefly(task: Task) {
  return viewWith(task, (part) => {
    if (!("data" in part)) return part;
    const { type, media_type, data } = part;
    return { type, media_type, size: Buffer.byteLength(data, "base64") };
  });
}

function viewWith(task: Task, viewPart: (part: InputPart) => PartView) {
  const { input, output } = task;
  return {
    id: task.id,
    agent: task.agent,
    tier: task.tier,
    prompt: input?.prompt ?? null,
    ...(task.inputForm === null ? {} : viewForm(task, viewPart)),
    ...(task.continues === null ? {} : { continues: task.continues }),
    tools: task.tools,
    status: task.status,
    output,
    credits_consumed: toCredits(task.credits),
    tools_called: task.toolsCalled.map((call) => ({
      id: call.id,
      tool: call.tool,
      arguments: call.arguments,
      status: call.status,
      started_at: timestamp(call.startedAt),
      duration_ms: call.durationMs,
    })),
    model: task.model,
    usage: { input_tokens: task.inputTokens, output_tokens: task.outputTokens, steps: task.steps },
    error: task.error,
    metadata: task.metadata,
    created_by: task.createdBy,
    created_at: timestamp(task.createdAt),
    started_at: optionalTimestamp(task.startedAt),
    finished_at: optionalTimestamp(task.finishedAt),
  };
}

/** The fields shown only for a task with messages or a schema. */
function viewForm({ input, output }: Task, viewPart: (part: InputPart) => PartView) {
  return {
    messages: input?.messages ? viewMessages(input.messages, viewPart) : null,
    output_schema: input?.outputSchema ?? null,
    output_json: outputValue(input, output),
  };
}

function viewMessages(messages: readonly InputMessage[], viewPart: (part: InputPart) => PartView) {
  return messages.map(({ role, content }) => ({
    role,
    content: typeof content === "string" ? content : content.map(viewPart),
  }));
}
