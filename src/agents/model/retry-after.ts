import { APICallError } from "@ai-sdk/provider";

/** The longest time to wait for a provider that has refused to answer. */
const LONGEST_WAIT_MS = 10_000;

/**
 * The pause in milliseconds requested by a provider (RFC 9110, section 10.2.3), if it answered 429 or 503 and the
 * pause is at most ten seconds; otherwise undefined. A date is compared with the response's own `Date`, so a wrong
 * clock does not matter; without `Date` it is ignored.
 */
export function retryAfter(error: unknown): number | undefined {
  if (!APICallError.isInstance(error)) return undefined;
  if (error.statusCode !== 429 && error.statusCode !== 503) return undefined;
  const { "retry-after": given, date } = error.responseHeaders ?? {};
  if (given === undefined) return undefined;
  const isSeconds = /^\d+$/.test(given.trim());
  // An HTTP date begins with the name of the weekday. JavaScript engines parse many other strings as dates, for
  // example `-5`.
  if (!isSeconds && !/^[A-Z][a-z]{2,8},? /.test(given)) return undefined;
  const ms = isSeconds ? Number(given) * 1_000 : Date.parse(given) - Date.parse(date ?? "");
  // An invalid date is NaN, which fails this comparison.
  return ms <= LONGEST_WAIT_MS ? Math.max(0, ms) : undefined;
}
