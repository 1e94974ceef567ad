import type { Message, ToolCall, ToolResult } from "./message.ts";

/** Where a run stands that goes on from steps taken before. */
export interface Progress {
  /** Whole steps and what came before them: the last message is nobody's unanswered call. */
  readonly messages: readonly Message[];
  readonly steps: number;
  /** The calls of the last step that have no result yet, and those of its results that are there. */
  readonly pending: readonly ToolCall[];
  readonly results: readonly ToolResult[];
}

/** Finds where to go on. @throws TypeError when the messages end with an answer: there is nothing left to do. */
export function progressOf(messages: readonly Message[]): Progress {
  const steps = messages.filter((message) => message.role === "assistant").length;
  const last = messages.at(-1);
  const results = last?.role === "tool" ? last.results : [];
  const asked = last?.role === "tool" ? messages.at(-2) : last;
  if (asked?.role !== "assistant") return { messages, steps, pending: [], results: [] };
  if (asked.toolCalls.length === 0) throw new TypeError("messages: the last one is a final answer already");
  const answered = new Set(results.map(({ id }) => id));
  const pending = asked.toolCalls.filter(({ id }) => !answered.has(id));
  if (pending.length === 0) return { messages, steps, pending, results: [] };
  return { messages: last?.role === "tool" ? messages.slice(0, -1) : messages, steps, pending, results };
}
