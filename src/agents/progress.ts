import type { Message, ToolCall, ToolResult } from "./message.ts";

/** The state from which a run resumes. */
export interface RunProgress {
  /** Complete steps and what preceded them. No call in these messages lacks a result. */
  readonly messages: readonly Message[];
  readonly steps: number;
  /** Calls of the last step without a result, and its existing results. */
  readonly pending: readonly ToolCall[];
  readonly results: readonly ToolResult[];
}

/**
 * Finds where to resume.
 * @throws TypeError if the messages end with an answer, because nothing is left to do
 */
export function progressOf(messages: readonly Message[]): RunProgress {
  const steps = messages.filter((message) => message.role === "assistant").length;
  const last = messages.at(-1);
  const results = last?.role === "tool" ? last.results : [];
  const asked = last?.role === "tool" ? messages.at(-2) : last;
  if (asked?.role !== "assistant") return { messages, steps, pending: [], results: [] };
  if (asked.toolCalls.length === 0)
    throw new TypeError("messages: the last message is already a final answer");
  const answered = new Set(results.map(({ id }) => id));
  const pending = asked.toolCalls.filter(({ id }) => !answered.has(id));
  if (pending.length === 0) return { messages, steps, pending, results: [] };
  return { messages: last?.role === "tool" ? messages.slice(0, -1) : messages, steps, pending, results };
}
