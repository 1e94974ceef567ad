/**
 * Tokens as counted by the provider. `estimated` is true if part of them was estimated from what was sent and
 * received, because the provider reported no plausible count.
 */
export interface TokenUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Parts of the token counts that may have their own prices. Absent if there are none. */
  readonly cachedTokens?: number;
  readonly cacheWriteTokens?: number;
  readonly reasoningTokens?: number;
  readonly estimated: boolean;
  /** Implausible counts that the provider reported. Absent if there are none. */
  readonly disbelieved?: ImplausibleCounts;
}

/** Names of token counts, in this order. */
export type ImplausibleCounts = "input_tokens" | "output_tokens" | "input_tokens output_tokens";

export const NO_USAGE: TokenUsage = { inputTokens: 0, outputTokens: 0, estimated: false };

export function addUsage(a: TokenUsage, b: TokenUsage): TokenUsage {
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    estimated: a.estimated || b.estimated,
  };
}

/** Estimated number of tokens in UTF-8 text: four bytes each, rounded up. */
export function estimateTokens(bytes: number): number {
  return Math.ceil(bytes / 4);
}

/**
 * The maximum number of bytes of text that one token covers. In each vocabulary that OpenAI publishes (gpt2,
 * p50k_base, cl100k_base, o200k_base of openai/tiktoken) the longest token has 128 bytes; in the two latest it is a
 * run of spaces.
 */
const MOST_BYTES_PER_TOKEN = 128;

/** How many bytes of text may be missing from a count. Smaller differences are not disputed. */
const DISREGARDED_BYTES = 4_096;

/** Maximum bytes of text for which a provider's token count is plausible. */
export function mostBytesOf(tokens: number): number {
  return DISREGARDED_BYTES + tokens * MOST_BYTES_PER_TOKEN;
}
