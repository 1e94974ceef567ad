import { createParser } from "eventsource-parser";

/** The kinds of response that a client accepts. */
export interface AcceptedTypes {
  readonly json: boolean;
  readonly stream: boolean;
}

const JSON_TYPES = new Set(["application/json", "application/*", "*/*"]);
const STREAM_TYPES = new Set(["text/event-stream", "text/*", "*/*"]);

/**
 * Reads the Accept header. The specification requires clients to name both types, but many programs name only one, or
 * none (RFC 9110, section 12.5.1: no header means any). Weights are ignored: a client that accepts a stream gets one.
 */
export function takes(headers: Headers): AcceptedTypes {
  const accept = headers.get("accept") ?? "*/*";
  const types = accept.split(",").map((part) => (part.split(";")[0] ?? "").trim().toLowerCase());
  return {
    json: types.some((type) => JSON_TYPES.has(type)),
    stream: types.some((type) => STREAM_TYPES.has(type)),
  };
}

/**
 * The request in the form that the SDK requires: it must accept both types. Without the body, which was already read.
 */
export function withAccept(request: Request, { json, stream }: AcceptedTypes): Request {
  const isTaken = request.method === "GET" ? stream : json || stream;
  if (!isTaken) return request;
  const headers = new Headers(request.headers);
  headers.set("accept", "application/json, text/event-stream");
  // Does not use the request's URL, which may be invalid because the client chooses the Host header. The SDK only
  // reads the method and headers.
  return new Request("http://localhost/", { method: request.method, headers });
}

/**
 * Converts the answers of a stream to one JSON body, for a client that does not accept streams. Leaves out progress.
 */
export async function asJson(response: Response): Promise<Response> {
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return response;
  const answers: unknown[] = [];
  const parser = createParser({
    onEvent({ data }) {
      if (data === "") return;
      const message: unknown = JSON.parse(data);
      if (typeof message === "object" && message !== null && !("method" in message)) answers.push(message);
    },
  });
  parser.feed(await response.text());
  const headers = new Headers({ "content-type": "application/json" });
  const session = response.headers.get("mcp-session-id");
  if (session !== null) headers.set("mcp-session-id", session);
  // A cancelled request has no answer.
  if (answers.length === 0) return new Response(null, { status: 202, headers });
  return new Response(JSON.stringify(answers.length === 1 ? answers[0] : answers), { headers });
}
