import type { LanguageModelV3Usage, LanguageModelV4Usage } from "@ai-sdk/provider";
import type { FinishReason } from "./events.ts";
import { CUT, describeFailure, INTERRUPTED, MODEL_ERROR, type ModelFailure } from "./failure.ts";
import type { Received, StreamPart } from "./received.ts";
import type { Run } from "./run.ts";
import type { ModelRequest } from "./upstream.ts";
import { estimateTokens, NO_USAGE, promptBytes, type Usage } from "./usage.ts";

type ProviderUsage = LanguageModelV3Usage | LanguageModelV4Usage;

/** How an answer ended, with what the provider says that it cost. */
export type Ending =
  | { readonly status: "succeeded"; readonly usage: ProviderUsage; readonly finishReason: FinishReason }
  | {
      readonly status: "failed";
      readonly failure: ModelFailure;
      readonly error: unknown;
      readonly usage?: ProviderUsage;
    }
  | { readonly status: "cancelled" };

export const CANCELLED: Ending = { status: "cancelled" };

export function failedEnding(error: unknown): Ending {
  return { status: "failed", failure: describeFailure(error), error };
}

/** The ending that this part of a stream is, or undefined while the answer goes on. No part is the end of the stream. */
export function endingOf(part: StreamPart | undefined): Ending | undefined {
  if (part === undefined) return { status: "failed", failure: CUT, error: new Error("The stream was cut.") };
  if (part.type === "error") return failedEnding(part.error);
  if (part.type !== "finish") return undefined;
  const { usage, finishReason } = part;
  const { unified } = finishReason;
  if (unified !== "error" && unified !== "interrupted") {
    return { status: "succeeded", usage, finishReason: unified };
  }
  const error = new Error(`The model ended with ${unified} (${finishReason.raw ?? "no reason given"}).`);
  return { status: "failed", failure: unified === "error" ? MODEL_ERROR : INTERRUPTED, error, usage };
}

/**
 * What an answer is charged. The provider's own count where there is one, an estimate where there is none; a failed
 * attempt of which nothing came costs nothing, a cancelled one what it was asked and what had come.
 */
export function usageOf(run: Run, request: ModelRequest, ending: Ending, received: Received): Usage {
  const given = ending.status === "cancelled" ? undefined : ending.usage;
  const input = count(given?.inputTokens.total);
  const output = count(given?.outputTokens.total);
  if (input !== undefined && output !== undefined) {
    return { inputTokens: input, outputTokens: output, estimated: false };
  }
  if (ending.status === "failed" && received.bytes === 0) return NO_USAGE;
  return {
    inputTokens: input ?? estimateTokens(promptBytes(run.settings.instructions, request.messages)),
    outputTokens: output ?? estimateTokens(received.bytes),
    estimated: true,
  };
}

/** No model takes or gives a thousandth of this in one call: a greater count is a fault, and would be charged as one. */
const TOKENS_LIMIT = 1_000_000_000;

/** Providers pass on what servers say, which need not be a number of tokens. What is none is as good as not given. */
function count(tokens: number | undefined): number | undefined {
  if (tokens === undefined || !Number.isSafeInteger(tokens)) return undefined;
  return tokens >= 0 && tokens <= TOKENS_LIMIT ? tokens : undefined;
}
