import type { LanguageModelV4FinishReason, LanguageModelV4Usage } from "@ai-sdk/provider";
import { field } from "../../json.ts";
import type { AnswerHead } from "../../translation/translation.ts";

/** The request's members that a response repeats. */
const REPEATED: Readonly<Record<string, unknown>> = {
  instructions: null,
  max_output_tokens: null,
  metadata: {},
  parallel_tool_calls: true,
  previous_response_id: null,
  reasoning: { effort: null, summary: null },
  store: true,
  temperature: 1,
  text: { format: { type: "text" } },
  tool_choice: "auto",
  tools: [],
  top_p: 1,
  truncation: "disabled",
};
/** These may be long. A stream in progress keeps nothing of its request, so its response leaves them out. */
const LONG = ["instructions", "tools", "text"];

/** A response without its output. */
export type ResponseForm = Readonly<Record<string, unknown>>;

/** @param request the parsed request. The form for a stream keeps none of its long parts */
export function responseForm(request: unknown, { id, model, created }: AnswerHead): ResponseForm {
  const isStream = field(request, "stream") === true;
  const repeated = Object.entries(REPEATED).map(([name, otherwise]) => {
    const given = isStream && LONG.includes(name) ? null : field(request, name);
    return [name, given ?? otherwise];
  });
  return {
    ...{ id: `resp_${id}`, object: "response", created_at: created, model },
    ...{ error: null, incomplete_details: null },
    ...Object.fromEntries(repeated),
  };
}

/** The response in its final state. */
export function endedResponse(
  form: ResponseForm,
  output: readonly object[],
  { unified }: LanguageModelV4FinishReason,
  usage: LanguageModelV4Usage,
): ResponseForm & { readonly status: "completed" | "incomplete" } {
  const reason =
    unified === "length" ? "max_output_tokens" : unified === "content-filter" ? "content_filter" : null;
  return {
    ...form,
    status: reason === null ? "completed" : "incomplete",
    incomplete_details: reason === null ? null : { reason },
    output,
    usage: usageMembers(usage),
  };
}

/** Clients demand usage. If none was reported, it is all zeros, and the charge is an estimate. */
function usageMembers({ inputTokens, outputTokens }: LanguageModelV4Usage): object {
  const { total: input = 0, cacheRead = 0, cacheWrite } = inputTokens;
  const { total: output = 0, reasoning = 0 } = outputTokens;
  const written = cacheWrite === undefined ? {} : { cache_write_tokens: cacheWrite };
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cacheRead, ...written },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: input + output,
  };
}
