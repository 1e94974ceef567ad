import type { Price } from "../../base/call-cost.ts";
import { toCredits } from "../../base/credits.ts";

/**
 * Credits per 1,000 tokens. Kinds of tokens without their own price are left out: they cost the same as the total
 * that they belong to.
 */
export interface ModelPriceView {
  readonly input: number;
  readonly output: number;
  readonly cached_input?: number;
  readonly cache_writes?: number;
  readonly reasoning?: number;
}

export function priceView({ input, output, cachedInput, cacheWrites, reasoning }: Price): ModelPriceView {
  return {
    ...{ input: toCredits(input), output: toCredits(output) },
    ...(cachedInput === undefined ? {} : { cached_input: toCredits(cachedInput) }),
    ...(cacheWrites === undefined ? {} : { cache_writes: toCredits(cacheWrites) }),
    ...(reasoning === undefined ? {} : { reasoning: toCredits(reasoning) }),
  };
}
