import { Problem } from "../base/errors.ts";

/** Each session takes about 20 KiB on a node that serves it, plus up to 256 KiB of events. */
export const SESSIONS_PER_WORKSPACE = 2_000;
export const SESSIONS_PER_NODE = 10_000;
/**
 * How long a session without requests and open streams is kept. A client that returns later gets 404 and starts a new
 * session.
 */
export const IDLE_MS = 30 * 60_000;
/** How long a session that lost its stream is kept. */
export const LOST_MS = 5 * 60_000;

const RETRY_SECONDS = 30;

export function tooManySessions(): Problem {
  return new Problem("rate_limited", "Too many MCP sessions are open, and all are in use. Retry later.", {
    headers: { "Retry-After": String(RETRY_SECONDS) },
  });
}
