import type { LanguageModelV3Usage, LanguageModelV4Usage } from "@ai-sdk/provider";
import type { FinishReason } from "../events.ts";
import { CUT, describeFailure, INTERRUPTED, MODEL_ERROR, type ModelFailure } from "./failure.ts";
import type { ResponseCollector, StreamPart } from "./response.ts";
import { estimateTokens, type ImplausibleCounts, mostBytesOf, NO_USAGE, type TokenUsage } from "./usage.ts";

type ProviderUsage = LanguageModelV3Usage | LanguageModelV4Usage;

/** How an answer ended, with the usage reported by the provider. */
export type ResponseEnd =
  | { readonly status: "succeeded"; readonly usage: ProviderUsage; readonly finishReason: FinishReason }
  | {
      readonly status: "failed";
      readonly failure: ModelFailure;
      readonly error: unknown;
      readonly usage?: ProviderUsage;
      /** Set if the stream broke without an error from the provider. */
      readonly isBroken?: true;
    }
  | { readonly status: "cancelled"; readonly usage?: ProviderUsage };

export const CANCELLED: ResponseEnd = { status: "cancelled" };

export function failedEnding(error: unknown): Extract<ResponseEnd, { status: "failed" }> {
  return { status: "failed", failure: describeFailure(error), error };
}

/**
 * The ending that this part of a stream represents; undefined while the answer continues. An undefined part is the
 * end of the stream.
 */
export function endingOf(part: StreamPart | undefined): ResponseEnd | undefined {
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

/** The facts about a request after it has ended. */
export interface EndedRequest {
  readonly ending: ResponseEnd;
  readonly received: Pick<ResponseCollector, "bytes">;
  /** The number of bytes sent, and how many of them are content. Called only if needed. */
  readonly sentBytes: () => number;
  readonly contentBytes: () => number;
  /** Whether the text that was sent has more bytes than this. */
  readonly exceedsText: (bytes: number) => boolean;
  /** Whether the provider had begun to answer. */
  readonly wasOpened: boolean;
}

/**
 * The usage to charge for an answer: the provider's own count if it is plausible, otherwise an estimate from what was
 * sent and received. An attempt that the provider refused costs nothing. An attempt that broke off or fell silent
 * after the provider had begun to answer costs what was sent, and so does a cancelled one, because the provider has
 * read it.
 */
export function usageOf({ ending, received, wasOpened, ...sent }: EndedRequest): TokenUsage {
  const given = ending.usage;
  if (ending.status === "failed" && given === undefined && received.bytes === 0) {
    const isLost = ending.isBroken === true || LOST.has(ending.failure.reason);
    if (!wasOpened || !isLost) return NOTHING_USED;
  }
  const { input, output, disbelieved } = countsOf(given, sent, received.bytes);
  return {
    inputTokens: input ?? estimateTokens(sent.contentBytes()),
    outputTokens: output ?? estimateTokens(received.bytes),
    ...partsOf(given, input, output),
    estimated: input === undefined || output === undefined,
    ...(disbelieved === undefined ? {} : { disbelieved }),
  };
}

/** The parts of accepted counts that the provider reports, limited to the totals that they belong to. */
function partsOf(
  given: ProviderUsage | undefined,
  input = 0,
  output = 0,
): Pick<TokenUsage, "cachedTokens" | "cacheWriteTokens" | "reasoningTokens"> {
  const part = (tokens: number | undefined, most: number) => (isCount(tokens) ? Math.min(tokens, most) : 0);
  const cachedTokens = part(given?.inputTokens.cacheRead, input);
  const cacheWriteTokens = part(given?.inputTokens.cacheWrite, input - cachedTokens);
  const reasoningTokens = part(given?.outputTokens.reasoning, output);
  return {
    ...(cachedTokens === 0 ? {} : { cachedTokens }),
    ...(cacheWriteTokens === 0 ? {} : { cacheWriteTokens }),
    ...(reasoningTokens === 0 ? {} : { reasoningTokens }),
  };
}

/** No tokens were counted, so zero is only an estimate. */
const NOTHING_USED: TokenUsage = { ...NO_USAGE, estimated: true };

/** Failures that can end an answer after the provider has begun it. */
const LOST: ReadonlySet<string> = new Set(["cut", "timeout", "connection"]);

/** The provider's counts; undefined if missing or impossible. */
interface Counts {
  readonly input?: number | undefined;
  readonly output?: number | undefined;
  readonly disbelieved?: ImplausibleCounts | undefined;
}

function countsOf(
  given: ProviderUsage | undefined,
  sent: Pick<EndedRequest, "sentBytes" | "exceedsText">,
  receivedBytes: number,
): Counts {
  if (given === undefined) return {};
  const { inputTokens, outputTokens, raw } = given;
  // Some servers count cached input separately from the rest, or reasoning separately from the answer.
  const input = count(inputTokens.total, inputTokens.cacheRead, raw, INPUT_FIELDS);
  const output = count(outputTokens.total, outputTokens.reasoning, raw, OUTPUT_FIELDS);
  // Sent by servers that do not count but must send a number.
  if (input === 0 && output === 0) return {};
  const believed = {
    input: credible(input, sent.sentBytes, sent.exceedsText),
    output: credible(
      output,
      () => receivedBytes,
      (bytes) => receivedBytes > bytes,
    ),
  };
  return {
    ...believed,
    disbelieved: disbelievedOf(
      isReported(inputTokens.total) && believed.input === undefined,
      isReported(outputTokens.total) && believed.output === undefined,
    ),
  };
}

/** 0 means that the count is missing. */
function isReported(tokens: number | undefined): boolean {
  return tokens !== undefined && tokens !== 0;
}

function disbelievedOf(isInput: boolean, isOutput: boolean): ImplausibleCounts | undefined {
  if (isInput && isOutput) return "input_tokens output_tokens";
  if (isInput) return "input_tokens";
  return isOutput ? "output_tokens" : undefined;
}

/** The names of the counts in the dialects. */
const INPUT_FIELDS = ["prompt_tokens", "input_tokens", "promptTokenCount"];
const OUTPUT_FIELDS = ["completion_tokens", "output_tokens", "candidatesTokenCount", "thoughtsTokenCount"];

/**
 * The maximum number of tokens that may be billed without being sent or received: reasoning, and the provider's own
 * additions to a prompt. Both must fit in the model's context window, which is at most 2^20 tokens for large models.
 */
const MOST_UNSEEN_TOKENS = 1_048_576;

/**
 * The value, if it is a token count. Providers pass on whatever servers report, and turn a missing or `null` count
 * into 0, which would make the call free.
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
 * The count, unless it is too low for the text that it covers, or too high: each token sent or received has at least
 * one byte. `bytes` is called only if the count is very large.
 */
function credible(
  tokens: number | undefined,
  bytes: () => number,
  exceedsText: (bytes: number) => boolean,
): number | undefined {
  if (tokens === undefined || exceedsText(mostBytesOf(tokens))) return undefined;
  return tokens <= MOST_UNSEEN_TOKENS || tokens <= bytes() + MOST_UNSEEN_TOKENS ? tokens : undefined;
}
