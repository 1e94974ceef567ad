import type { LanguageModelV3Usage, LanguageModelV4Usage } from "@ai-sdk/provider";
import type { FinishReason } from "./events.ts";
import { CUT, describeFailure, INTERRUPTED, MODEL_ERROR, type ModelFailure } from "./failure.ts";
import type { Received, StreamPart } from "./received.ts";
import { type Disbelieved, estimateTokens, NO_USAGE, type Usage } from "./usage.ts";

type ProviderUsage = LanguageModelV3Usage | LanguageModelV4Usage;

/** How an answer ended, with what the provider says that it cost. */
export type Ending =
  | { readonly status: "succeeded"; readonly usage: ProviderUsage; readonly finishReason: FinishReason }
  | {
      readonly status: "failed";
      readonly failure: ModelFailure;
      readonly error: unknown;
      readonly usage?: ProviderUsage;
      /** The stream broke: the provider did not say that it failed. */
      readonly isBroken?: true;
    }
  | { readonly status: "cancelled" };

export const CANCELLED: Ending = { status: "cancelled" };

export function failedEnding(error: unknown): Extract<Ending, { status: "failed" }> {
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

/** What is known of one question when it has ended. */
export interface EndedRequest {
  readonly ending: Ending;
  readonly received: Pick<Received, "bytes">;
  /** Bytes that were sent, and those of them that are content; asked for only where they matter. */
  readonly sentBytes: () => number;
  readonly contentBytes: () => number;
  /** Whether the provider had begun to answer. */
  readonly wasOpened: boolean;
}

/**
 * What an answer is charged: the provider's own count if that can be true, else an estimate from what was sent and received. An
 * attempt that the provider refused costs nothing. One that broke off or fell silent after the provider had begun to answer
 * costs what was sent, and so does a cancelled one: the provider has read it.
 */
export function usageOf({ ending, received, wasOpened, ...sent }: EndedRequest): Usage {
  const given = ending.status === "cancelled" ? undefined : ending.usage;
  if (ending.status === "failed" && given === undefined && received.bytes === 0) {
    const isLost = ending.isBroken === true || LOST.has(ending.failure.reason);
    if (!wasOpened || !isLost) return NOTHING_USED;
  }
  const { input, output, disbelieved } = countsOf(given, sent.sentBytes, received.bytes);
  return {
    inputTokens: input ?? estimateTokens(sent.contentBytes()),
    outputTokens: output ?? estimateTokens(received.bytes),
    estimated: input === undefined || output === undefined,
    ...(disbelieved === undefined ? {} : { disbelieved }),
  };
}

/** Nobody has counted anything: that nothing was used is an estimate too. */
const NOTHING_USED: Usage = { ...NO_USAGE, estimated: true };

/** Why an answer ends that the provider had begun, and did not refuse. */
const LOST: ReadonlySet<string> = new Set(["cut", "timeout", "connection"]);

/** What the provider counted; undefined for a count that is missing or cannot be true. */
interface Counts {
  readonly input?: number | undefined;
  readonly output?: number | undefined;
  readonly disbelieved?: Disbelieved | undefined;
}

function countsOf(given: ProviderUsage | undefined, sentBytes: () => number, receivedBytes: number): Counts {
  if (given === undefined) return {};
  const { inputTokens, outputTokens, raw } = given;
  // Some servers count what came from their cache apart from the rest, or reasoning apart from the answer.
  const input = count(inputTokens.total, inputTokens.cacheRead, raw, INPUT_FIELDS);
  const output = count(outputTokens.total, outputTokens.reasoning, raw, OUTPUT_FIELDS);
  // What a server sends that counts nothing, but has to send a number.
  if (input === 0 && output === 0) return {};
  const believed = {
    input: credible(input, sentBytes),
    output: credible(output, () => receivedBytes),
  };
  return {
    ...believed,
    disbelieved: disbelievedOf(
      isReported(inputTokens.total) && believed.input === undefined,
      isReported(outputTokens.total) && believed.output === undefined,
    ),
  };
}

/** A 0 stands for a count that is missing. */
function isReported(tokens: number | undefined): boolean {
  return tokens !== undefined && tokens !== 0;
}

function disbelievedOf(isInput: boolean, isOutput: boolean): Disbelieved | undefined {
  if (isInput && isOutput) return "input_tokens output_tokens";
  if (isInput) return "input_tokens";
  return isOutput ? "output_tokens" : undefined;
}

/** What the dialects call their counts. */
const INPUT_FIELDS = ["prompt_tokens", "input_tokens", "promptTokenCount"];
const OUTPUT_FIELDS = ["completion_tokens", "output_tokens", "candidatesTokenCount", "thoughtsTokenCount"];

/** Far more than any token has: the longest of known models have 128. */
const MOST_BYTES_PER_TOKEN = 4_096;

/**
 * Tokens that may be billed without being sent or received: reasoning, and what a provider puts in front of a prompt. Both
 * have to fit into the model's context window, and the large ones have 2^20 tokens.
 */
const MOST_UNSEEN_TOKENS = 1_048_576;

/**
 * The count, as far as it is one: providers pass on what servers report, which may be anything, and turn a missing or `null`
 * count into 0, which would make the call free.
 */
function count(
  total: number | undefined,
  part: number | undefined,
  raw: ProviderUsage["raw"],
  fields: readonly string[],
): number | undefined {
  if (!isCount(total)) return undefined;
  if (total === 0 && raw !== undefined && !fields.some((field) => typeof raw[field] === "number"))
    return undefined;
  return isCount(part) ? Math.max(total, part) : total;
}

function isCount(tokens: number | undefined): tokens is number {
  return tokens !== undefined && Number.isSafeInteger(tokens) && tokens >= 0;
}

/**
 * The count, unless so many bytes cannot be so many tokens: each token of what was sent or received has a byte at least.
 * `bytes` is asked for only if the count is very small or large.
 */
function credible(tokens: number | undefined, bytes: () => number): number | undefined {
  if (tokens === undefined || (tokens >= MOST_BYTES_PER_TOKEN && tokens <= MOST_UNSEEN_TOKENS)) return tokens;
  const known = bytes();
  const isPossible =
    tokens >= Math.floor(known / MOST_BYTES_PER_TOKEN) && tokens <= known + MOST_UNSEEN_TOKENS;
  return isPossible ? tokens : undefined;
}
