import type { TokenCounts } from "../base/call-cost.ts";

/**
 * The tokens of a call that have their own price, under the names used in its entry's `detail`. Zero counts are left
 * out.
 */
export function tokenParts({
  cachedTokens = 0,
  cacheWriteTokens = 0,
  reasoningTokens = 0,
}: TokenCounts): Record<string, number> {
  return {
    ...(cachedTokens === 0 ? {} : { cached_tokens: cachedTokens }),
    ...(cacheWriteTokens === 0 ? {} : { cache_write_tokens: cacheWriteTokens }),
    ...(reasoningTokens === 0 ? {} : { reasoning_tokens: reasoningTokens }),
  };
}
