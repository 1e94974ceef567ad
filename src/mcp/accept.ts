import { createParser } from "eventsource-parser";

/** What a client takes as an answer. */
export interface Takes {
  readonly json: boolean;
  readonly stream: boolean;
}

const JSON_TYPES = new Set(["application/json", "application/*", "*/*"]);
const STREAM_TYPES = new Set(["text/event-stream", "text/*", "*/*"]);

/**
 * The specification has clients name both types; many programs name one, or any (RFC 9110, section 12.5.1: no header means
 * any). Weights are not looked at: whoever takes a stream is sent one.
 */
export function takes(headers: Headers): Takes {
  const accept = headers.get("accept") ?? "*/*";
  const types = accept.split(",").map((part) => (part.split(";")[0] ?? "").trim().toLowerCase());
  return {
    json: types.some((type) => JSON_TYPES.has(type)),
    stream: types.some((type) => STREAM_TYPES.has(type)),
  };
}

/** The request as the SDK wants it, which takes both types or neither. It carries no body: that was read before. */
export function withAccept(request: Request, { json, stream }: Takes): Request {
  const isTaken = request.method === "GET" ? stream : json || stream;
  if (!isTaken) return request;
  const headers = new Headers(request.headers);
  headers.set("accept", "application/json, text/event-stream");
  // Not its own URL, which need not be one: the Host header is the client's. The SDK looks at method and headers alone.
  return new Request("http://localhost/", { method: request.method, headers });
}

/** The answers of a stream as one JSON body, for a client that takes no stream; progress is left out. */
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
  // What was cancelled has no answer.
  if (answers.length === 0) return new Response(null, { status: 202, headers });
  return new Response(JSON.stringify(answers.length === 1 ? answers[0] : answers), { headers });
}
