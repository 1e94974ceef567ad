import type { LanguageModelV4Usage } from "@ai-sdk/provider";
import { field, tokenCount } from "../json.ts";

/** The usage of a chat completion or chunk; null if there is none. */
export function chatUsage(usage: unknown): LanguageModelV4Usage | null {
  if (typeof usage !== "object" || usage === null) return null;
  const total = tokenCount(field(usage, "prompt_tokens"));
  const cacheRead = tokenCount(field(field(usage, "prompt_tokens_details"), "cached_tokens"));
  const output = tokenCount(field(usage, "completion_tokens"));
  const reasoning = tokenCount(field(field(usage, "completion_tokens_details"), "reasoning_tokens"));
  return {
    inputTokens: { total, cacheRead, cacheWrite: undefined, noCache: without(total, cacheRead) },
    outputTokens: { total: output, reasoning, text: without(output, reasoning) },
    raw: usage as NonNullable<LanguageModelV4Usage["raw"]>,
  };
}

function without(total: number | undefined, part: number | undefined): number | undefined {
  return total === undefined ? undefined : Math.max(0, total - (part ?? 0));
}
