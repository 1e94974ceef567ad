import type { LanguageModelV4FinishReason, LanguageModelV4Usage } from "@ai-sdk/provider";

/** A message's `stop_reason`. Some providers end an answer with tool calls as if it had none. */
export function stopReason({ unified, raw }: LanguageModelV4FinishReason, callsTools: boolean): string {
  if (raw === "stop_sequence") return raw;
  switch (unified) {
    case "length":
      return "max_tokens";
    case "content-filter":
      return "refusal";
    case "tool-calls":
      return "tool_use";
    default:
      return callsTools ? "tool_use" : "end_turn";
  }
}

/** A message's `usage`. The dialect requires numbers, so counts that the provider did not report are 0. */
export function usageMembers({ inputTokens, outputTokens }: LanguageModelV4Usage): Record<string, unknown> {
  const { total = 0, cacheRead = 0, cacheWrite = 0 } = inputTokens;
  const { reasoning } = outputTokens;
  return {
    input_tokens: inputTokens.noCache ?? Math.max(0, total - cacheRead - cacheWrite),
    cache_creation_input_tokens: cacheWrite,
    cache_read_input_tokens: cacheRead,
    output_tokens: outputTokens.total ?? 0,
    ...(reasoning === undefined ? {} : { output_tokens_details: { thinking_tokens: reasoning } }),
  };
}
