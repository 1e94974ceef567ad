import { optionalTimestamp, timestamp } from "../base/clock.ts";
import { toCredits } from "../base/credits.ts";
import type { Task } from "./task.ts";

/** A task as shown to clients (contract, section 3), both over REST and in `task.finished`. */
export function viewTask(task: Task) {
  return {
    id: task.id,
    agent: task.agent,
    tier: task.tier,
    prompt: task.prompt,
    tools: task.tools,
    status: task.status,
    output: task.output,
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
