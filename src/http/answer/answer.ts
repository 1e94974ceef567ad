import type { FieldError, Problem } from "../../base/errors.ts";
import { redact } from "../../base/log.ts";
import type { RequestLimit } from "../../gate/requests.ts";
import type { BodyParts } from "./json-parts.ts";

const ENCODER = new TextEncoder();

/** The result of a handler. The endpoint adds the headers of the call. */
export interface Reply {
  readonly status: number;
  /** Sent as JSON; undefined sends no body. */
  readonly body?: unknown;
  /** JSON that is already written, sent instead of `body`. */
  readonly json?: BodyParts;
  /** Sent unchanged instead of `body`. Plain text unless `headers` has a `content-type`. */
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Response headers about one call: its id, its ledger entry and what is left of the request limit. */
export interface CallHeaders {
  readonly requestId: string;
  readonly ledgerSeq: number | null;
  readonly limit: RequestLimit | null;
}

export function callHeaders({ requestId, ledgerSeq, limit }: CallHeaders): Record<string, string> {
  const headers: Record<string, string> = { "gatehouse-request-id": requestId };
  if (ledgerSeq !== null) headers["gatehouse-ledger"] = String(ledgerSeq);
  if (limit !== null) {
    headers["ratelimit-policy"] = `"requests";q=${limit.quota};w=60`;
    headers.ratelimit = `"requests";r=${limit.remaining};t=${limit.resetSeconds}`;
    if (limit.exceeded) headers["gatehouse-limit-exceeded"] = "requests";
  }
  return headers;
}

/** The response of a short reply. `LongAnswers` streams all others. */
export function shortResponse(reply: Reply, headers: Record<string, string>): Response {
  return new Response(contentOf(reply), { status: reply.status, headers: headersOf(reply, headers) });
}

/** The response headers of a reply, added to `own`, the headers of the call. */
export function headersOf(reply: Reply, own: Record<string, string>): Record<string, string> {
  const all = reply.headers ? Object.assign(own, reply.headers) : own;
  if (reply.text !== undefined) all["content-type"] ??= "text/plain; charset=utf-8";
  else if (reply.json !== undefined || reply.body !== undefined) all["content-type"] = "application/json";
  return all;
}

function contentOf({ text, json, body }: Reply): string | ReadableStream<Uint8Array> | null {
  if (text !== undefined) return text;
  if (json === undefined) return body === undefined ? null : JSON.stringify(body);
  const parts = [...json.parts()];
  if (parts.every((part) => typeof part === "string")) return parts.join("");
  // A stream of parts: if a large body is sent in one piece after a turn, Bun writes each header separately (19 to 39
  // writes).
  return new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(typeof part === "string" ? ENCODER.encode(part) : part);
      controller.close();
    },
  });
}

/** The RFC 9457 body of an error response. */
export interface ProblemBody {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: string;
  readonly request_id: string;
  readonly errors?: readonly FieldError[];
}

export function problemResponse(
  problem: Problem,
  headers: Record<string, string>,
  requestId: string,
): Response {
  const body: ProblemBody = {
    type: `urn:gatehouse:problem:${problem.code}`,
    title: problem.title,
    status: problem.status,
    detail: problem.message,
    code: problem.code,
    request_id: requestId,
    ...(problem.errors ? { errors: problem.errors } : {}),
  };
  // A detail may quote the request, which may have a secret in the wrong place.
  return new Response(redact(JSON.stringify(body)), {
    status: problem.status,
    headers: { ...headers, ...problem.headers, "content-type": "application/problem+json" },
  });
}
