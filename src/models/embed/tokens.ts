/** Tokens that a provider may count beyond a text's bytes: what it puts around each text. */
const MOST_AROUND_A_TEXT = 1_000;
const BYTES_PER_TOKEN = 4;

/** The tokens of a request for vectors: what the provider reports if so many bytes can be so many tokens, else an estimate. */
export function embeddingTokens(values: readonly string[], reported: number | undefined): number {
  const bytes = values.reduce((sum, value) => sum + Buffer.byteLength(value), 0);
  const most = bytes + MOST_AROUND_A_TEXT * values.length;
  if (reported !== undefined && Number.isSafeInteger(reported) && reported > 0 && reported <= most)
    return reported;
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}
