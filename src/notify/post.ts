import type { Clock } from "../base/clock.ts";
import { VERSION } from "../base/version.ts";
import { VIA_HEADER, viaText } from "../base/via.ts";
import { signPost } from "./signature.ts";

export interface Receiver {
  /** May contain credentials, so only its origin is shown. */
  readonly url: string;
  readonly secret: Uint8Array;
  /** This installation's id, so that it recognises a URL that leads back to it. */
  readonly instance: string;
}

/** The result of a post. Its text is this program's own, because a response may contain anything. */
export interface PostResult {
  readonly httpStatus: number | null;
  /** Null means accepted. */
  readonly problem: string | null;
  /** Whether the receiver wants no more notices (410): Standard Webhooks requires the sender to stop. */
  readonly isGone: boolean;
  /** Requested pause (`Retry-After`) in milliseconds; null if there is none. */
  readonly retryAfterMs: number | null;
}

const TIMEOUT_MS = 15_000;

/** Posts a signed body once. Never throws. */
export async function post(
  { url, secret, instance }: Receiver,
  { id, body }: { readonly id: string; readonly body: string },
  clock: Clock,
  closing: AbortSignal,
): Promise<PostResult> {
  const control = new AbortController();
  const abort = () => control.abort();
  const cancel = clock.after(TIMEOUT_MS, abort);
  closing.addEventListener("abort", abort, { once: true });
  const seconds = Math.floor(clock.now() / 1000);
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "user-agent": `gatehouse/${VERSION}`,
        [VIA_HEADER]: viaText([instance]),
        "webhook-id": id,
        "webhook-timestamp": String(seconds),
        "webhook-signature": signPost(secret, { id, seconds, body }),
      },
      body,
      // A body signed for one receiver is not forwarded to another.
      redirect: "manual",
      // Nobody reads the answer's body.
      decompress: false,
      signal: control.signal,
    });
    const { status, ok, headers } = response;
    // Nobody reads the body, and an endless one would hold the connection.
    await response.body?.cancel();
    const retryAfterMs = readRetryAfter(headers.get("retry-after"), clock.now());
    const problem = ok ? null : `it answered ${status}`;
    return { httpStatus: status, problem, isGone: status === 410, retryAfterMs };
  } catch (error) {
    // The error's message may contain the URL.
    const problem = control.signal.aborted
      ? "it did not answer in time"
      : `it cannot be reached (${codeOf(error)})`;
    return { httpStatus: null, problem, isGone: false, retryAfterMs: null };
  } finally {
    cancel();
    closing.removeEventListener("abort", abort);
  }
}

/** Seconds or a date (RFC 9110, section 10.2.3). */
function readRetryAfter(value: string | null, now: number): number | null {
  if (value === null) return null;
  if (/^\d{1,10}$/.test(value)) return Number(value) * 1000;
  // Text that begins differently is not an HTTP date, though `Date` might accept it.
  const at = /^[A-Z][a-z]{2,8},? /.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(at) ? null : Math.max(at - now, 0);
}

function codeOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return /^[A-Za-z0-9_]{1,64}$/.test(code) ? code : "unknown";
}
