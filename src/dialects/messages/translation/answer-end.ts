import type {
  LanguageModelV4FinishReason,
  LanguageModelV4GenerateResult,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";
import { field } from "../../json.ts";

const STOP_SEQUENCE = "stop_sequence";

/**
 * The members that state why a message ended. Only Amazon reports which stop sequence ended it, and only for
 * Anthropic's models.
 */
export function endMembers(
  {
    finishReason,
    providerMetadata,
  }: Pick<LanguageModelV4GenerateResult, "finishReason" | "providerMetadata">,
  callsTools: boolean,
): { readonly stop_reason: string; readonly stop_sequence: string | null } {
  const stop_reason = stopReason(finishReason, callsTools);
  const reported = stop_reason === STOP_SEQUENCE ? field(providerMetadata?.bedrock, "stopSequence") : null;
  return { stop_reason, stop_sequence: typeof reported === "string" ? reported : null };
}

/** Some providers end an answer with tool calls as if it contained none. */
function stopReason({ unified, raw }: LanguageModelV4FinishReason, callsTools: boolean): string {
  if (raw === STOP_SEQUENCE) return raw;
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
