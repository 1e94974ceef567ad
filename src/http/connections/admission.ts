import { Problem } from "../../base/errors.ts";
import type { Ids } from "../../base/ids.ts";
import { problemResponse } from "../answer/answer.ts";

const RETRY_SECONDS = 1;
/**
 * Paths, with or without a query, that end work. Such a call frees capacity, so it is admitted even when none is
 * left.
 */
const ENDS_WORK = /^[^?]*\/(?:stop|cancel)(?:\?|$)/;

/**
 * Whether a request counts as a call: it may take a long time and keeps its connection open until answered. Pages,
 * probes and metrics are answered immediately, to anyone.
 */
export function isCall(url: string): boolean {
  const path = url.indexOf("/", "https://".length);
  return url.startsWith("/v1/", path) || url.startsWith("/mcp", path);
}

export function endsWork(url: string): boolean {
  return ENDS_WORK.test(url);
}

/** The response when there is no room for a call. It is sent before authentication, and is not recorded. */
export function noRoom(ids: Ids): Response {
  const requestId = ids("req");
  const problem = new Problem("rate_limited", "The server has too many open calls. Retry shortly.", {
    headers: { "Retry-After": String(RETRY_SECONDS), Connection: "close" },
  });
  return problemResponse(problem, { "gatehouse-request-id": requestId }, requestId);
}
