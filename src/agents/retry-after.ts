import { APICallError } from "@ai-sdk/provider";

/** Nobody who waits for an answer is kept longer by a provider that has refused to give one. */
const LONGEST_WAIT_MS = 10_000;

/**
 * Milliseconds after which a provider asks to be tried again (RFC 9110, section 10.2.3), where its answer was 429 or 503 and
 * this is at most ten seconds; else undefined. A date is held against the answer's own `Date`, so that it does not matter
 * whose clock is wrong; without that it says nothing.
 */
export function retryAfter(error: unknown): number | undefined {
  if (!APICallError.isInstance(error)) return undefined;
  if (error.statusCode !== 429 && error.statusCode !== 503) return undefined;
  const { "retry-after": given, date } = error.responseHeaders ?? {};
  if (given === undefined) return undefined;
  const isSeconds = /^\d+$/.test(given.trim());
  // A date of HTTP begins with the name of its day; engines take much else for one, `-5` among it.
  if (!isSeconds && !/^[A-Z][a-z]{2,8},? /.test(given)) return undefined;
  const ms = isSeconds ? Number(given) * 1_000 : Date.parse(given) - Date.parse(date ?? "");
  // A date that is no date is not a number, and none of these.
  return ms <= LONGEST_WAIT_MS ? Math.max(0, ms) : undefined;
}
