import type { LanguageModelV4Usage } from "@ai-sdk/provider";
import { field, tokenCount } from "../json.ts";

/** The usage of a response; null if there is none. */
export function responsesUsage(usage: unknown): LanguageModelV4Usage | null {
  if (typeof usage !== "object" || usage === null) return null;
  const details = field(usage, "input_tokens_details");
  const total = tokenCount(field(usage, "input_tokens"));
  const cacheRead = tokenCount(field(details, "cached_tokens"));
  const cacheWrite = tokenCount(field(details, "cache_write_tokens"));
  const output = tokenCount(field(usage, "output_tokens"));
  const reasoning = tokenCount(field(field(usage, "output_tokens_details"), "reasoning_tokens"));
  const cached = (cacheRead ?? 0) + (cacheWrite ?? 0);
  return {
    inputTokens: { total, cacheRead, cacheWrite, noCache: without(total, cached) },
    outputTokens: { total: output, reasoning, text: without(output, reasoning ?? 0) },
    raw: usage as NonNullable<LanguageModelV4Usage["raw"]>,
  };
}

function without(total: number | undefined, part: number): number | undefined {
  return total === undefined ? undefined : Math.max(0, total - part);
}
