import { estimateTokens, mostBytesOf } from "../../agents/model/usage.ts";

/**
 * The maximum number of tokens that a provider may count for each text beyond its bytes, because it adds tokens
 * around the text.
 */
const MOST_AROUND_A_TEXT = 1_000;

/**
 * Tokens of a request for vectors: the provider's count if this number of bytes can be that many tokens, otherwise an
 * estimate.
 */
export function embeddingTokens(values: readonly string[], reported: number | undefined): number {
  const bytes = values.reduce((sum, value) => sum + Buffer.byteLength(value), 0);
  const most = bytes + MOST_AROUND_A_TEXT * values.length;
  const isCount = reported !== undefined && Number.isSafeInteger(reported) && reported > 0;
  return isCount && reported <= most && bytes <= mostBytesOf(reported) ? reported : estimateTokens(bytes);
}
