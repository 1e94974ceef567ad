import type { Price } from "../../base/call-cost.ts";
import { toCredits } from "../../base/credits.ts";

/** Credits per 1,000 tokens. Parts without a price of their own are left out: they cost as their whole. */
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
