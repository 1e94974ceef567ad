import type { Clock } from "../base/clock.ts";
import { VERSION } from "../base/version.ts";
import { VIA_HEADER, viaText } from "../base/via.ts";
import { signPost } from "./signature.ts";

export interface Receiver {
  /** May carry credentials: shown nowhere but for its origin. */
  readonly url: string;
  readonly secret: Uint8Array;
  /** This Gatehouse's id, so that a URL which leads back to it is noticed there. */
  instance(): string;
}

/** What a receiver made of one post. Its words are this program's: an answer's own text may hold anything. */
export interface Posted {
  readonly httpStatus: number | null;
  /** Null: it was taken. */
  readonly problem: string | null;
  /** It says that it wants no more of it (410): Standard Webhooks has the sender stop. */
  readonly isGone: boolean;
  /** How long it asks to be left alone (`Retry-After`), in milliseconds; null where it does not say. */
  readonly retryAfterMs: number | null;
}

const TIMEOUT_MS = 15_000;

/** Posts a body once, signed. Never throws. */
export async function post(
  { url, secret, instance }: Receiver,
  { id, body }: { readonly id: string; readonly body: string },
  clock: Clock,
  closing: AbortSignal,
): Promise<Posted> {
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
        [VIA_HEADER]: viaText([instance()]),
        "webhook-id": id,
        "webhook-timestamp": String(seconds),
        "webhook-signature": signPost(secret, { id, seconds, body }),
      },
      body,
      // What is signed for one receiver is not handed on to another.
      redirect: "manual",
      signal: control.signal,
    });
    const { status, ok, headers } = response;
    // Nobody reads it, and one that does not end would hold the connection.
    await response.body?.cancel();
    const retryAfterMs = readRetryAfter(headers.get("retry-after"), clock.now());
    const problem = ok ? null : `it answered ${status}`;
    return { httpStatus: status, problem, isGone: status === 410, retryAfterMs };
  } catch (error) {
    // Its message may hold the URL.
    const problem = control.signal.aborted
      ? "it did not answer in time"
      : `it cannot be reached (${codeOf(error)})`;
    return { httpStatus: null, problem, isGone: false, retryAfterMs: null };
  } finally {
    cancel();
    closing.removeEventListener("abort", abort);
  }
}

/** Seconds, or a date (RFC 9110, section 10.2.3). */
function readRetryAfter(value: string | null, now: number): number | null {
  if (value === null) return null;
  if (/^\d{1,10}$/.test(value)) return Number(value) * 1000;
  // Anything that begins otherwise is no date of HTTP, though `Date` would make one of it.
  const at = /^[A-Z][a-z]{2,8},? /.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(at) ? null : Math.max(at - now, 0);
}

function codeOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return /^[A-Za-z0-9_]{1,64}$/.test(code) ? code : "unknown";
}
