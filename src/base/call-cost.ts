import { cappedMicros } from "./credits.ts";

/** Micro-credits per 1,000 tokens. */
export interface Price {
  readonly input: number;
  readonly output: number;
  /** Input that the provider read from its cache. Default: the price of input. */
  readonly cachedInput?: number;
  /** Input that the provider wrote to its cache. Default: the price of input. */
  readonly cacheWrites?: number;
  /** Output that is reasoning. Default: the price of output. */
  readonly reasoning?: number;
}

/** The tokens of one call. The optional counts are parts of the two others. */
export interface TokenCounts {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens?: number;
  readonly cacheWriteTokens?: number;
  readonly reasoningTokens?: number;
}

export const FREE: Price = { input: 0, output: 0 };

/** Whether a call costs nothing, whatever its tokens are. */
export function isFree({ input, output, cachedInput = 0, cacheWrites = 0, reasoning = 0 }: Price): boolean {
  return input === 0 && output === 0 && cachedInput === 0 && cacheWrites === 0 && reasoning === 0;
}

/**
 * The price of tokens whose kinds are not known yet: each is priced as the most expensive kind, so nothing costs more
 * than expected.
 */
export function dearest({ input, output, cachedInput = 0, cacheWrites = 0, reasoning = 0 }: Price): Price {
  return { input: Math.max(input, cachedInput, cacheWrites), output: Math.max(output, reasoning) };
}

/**
 * The cost of one call in micro-credits, rounded up once, over all kinds of tokens together. Always a safe integer: a
 * higher cost (above nine billion credits) is capped, and the rest is not charged. Parts that exceed their total are
 * capped at it, cached input first.
 */
export function cost(price: Price, tokens: TokenCounts): number {
  const { inputTokens, outputTokens, cachedTokens = 0, cacheWriteTokens = 0, reasoningTokens = 0 } = tokens;
  const cached = Math.min(cachedTokens, inputTokens);
  const written = Math.min(cacheWriteTokens, inputTokens - cached);
  const reasoning = Math.min(reasoningTokens, outputTokens);
  const thousandths =
    times(inputTokens - cached - written, price.input) +
    times(cached, price.cachedInput ?? price.input) +
    times(written, price.cacheWrites ?? price.input) +
    times(outputTokens - reasoning, price.output) +
    times(reasoning, price.reasoning ?? price.output);
  return cappedMicros(Number((thousandths + 999n) / 1000n));
}

function times(tokens: number, price: number): bigint {
  return tokens === 0 || price === 0 ? 0n : BigInt(tokens) * BigInt(price);
}
