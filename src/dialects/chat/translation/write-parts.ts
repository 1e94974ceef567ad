import type {
  LanguageModelV4Citation,
  LanguageModelV4FinishReason,
  LanguageModelV4Source,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";
import { Problem } from "../../../base/errors.ts";

/** The usage of an answer; undefined if the provider has not reported it. */
export function usageMembers({ inputTokens, outputTokens }: LanguageModelV4Usage): object | undefined {
  const { total: input, cacheRead } = inputTokens;
  const { total: output, reasoning } = outputTokens;
  if (input === undefined || output === undefined) return undefined;
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    ...(cacheRead === undefined ? {} : { prompt_tokens_details: { cached_tokens: cacheRead } }),
    ...(reasoning === undefined ? {} : { completion_tokens_details: { reasoning_tokens: reasoning } }),
  };
}

/** @param calls how many tools the model called */
export function finishReasonOf({ unified }: LanguageModelV4FinishReason, calls: number): string {
  switch (unified) {
    case "length":
      return "length";
    case "content-filter":
      return "content_filter";
    default:
      return calls > 0 ? "tool_calls" : "stop";
  }
}

/** The sources of some text. Documents in the request have no address, so they cannot be cited. */
export function annotationsOf(citations: readonly LanguageModelV4Citation[]): object[] {
  return citations.flatMap(({ source, startIndex = 0, endIndex = 0 }) => {
    if (source.sourceType !== "url") return [];
    const { url, title = url } = source;
    const cited = { url, title, start_index: startIndex, end_index: endIndex };
    return [{ type: "url_citation", url_citation: cited }];
  });
}

/** A source of the whole answer rather than of a part of its text. */
export function sourceAnnotations(source: LanguageModelV4Source): object[] {
  return annotationsOf([{ source }]);
}

/** The refusal for a file made by a model: chat completions cannot carry files. */
export function unspokenFile(): Problem {
  return new Problem(
    "provider_failed",
    "The model answered with a file, which a chat completion cannot carry.",
  );
}
