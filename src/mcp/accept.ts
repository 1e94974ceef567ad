import { createParser } from "eventsource-parser";
import { Problem } from "../base/errors.ts";
import type { AnswerPlace } from "./parts.ts";

/** The kinds of response that a client accepts. */
export interface AcceptedTypes {
  readonly json: boolean;
  readonly stream: boolean;
}

/** What the SDKs' clients send. */
const BOTH = "application/json, text/event-stream";
const BOTH_TYPES: AcceptedTypes = { json: true, stream: true };
const JSON_TYPES = new Set(["application/json", "application/*", "*/*"]);
const STREAM_TYPES = new Set(["text/event-stream", "text/*", "*/*"]);

/**
 * Reads the Accept header. The specification requires clients to name both types, but many programs name only one, or
 * none (RFC 9110, section 12.5.1: no header means any). Weights are ignored: a client that accepts a stream gets one.
 */
export function takes(headers: Headers): AcceptedTypes {
  const accept = headers.get("accept") ?? "*/*";
  if (accept === BOTH) return BOTH_TYPES;
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
  headers.set("accept", BOTH);
  // Does not use the request's URL, which may be invalid because the client chooses the Host header. The SDK only
  // reads the method and headers.
  return new Request("http://localhost/", { method: request.method, headers });
}

/**
 * Converts the answers in a stream to one JSON body, for a client that does not accept streams. Progress is left out.
 * @param hold reserves memory for that many bytes of the answers until all of them have arrived
 * @throws Problem 429 `rate_limited` if newer answers need the reserved memory
 */
export async function asJson(response: Response, hold: (bytes: number) => AnswerPlace): Promise<Response> {
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return response;
  const answers = await answersOf(response, hold);
  const headers = new Headers({ "content-type": "application/json" });
  const session = response.headers.get("mcp-session-id");
  if (session !== null) headers.set("mcp-session-id", session);
  // A cancelled request has no answer.
  if (answers.length === 0) return new Response(null, { status: 202, headers });
  return new Response(answers.length === 1 ? answers[0] : `[${answers.join(",")}]`, { headers });
}

/** The answers in a stream, as JSON text. */
async function answersOf(response: Response, hold: (bytes: number) => AnswerPlace): Promise<string[]> {
  const answers: string[] = [];
  const parser = createParser({
    onEvent({ data }) {
      if (data === "") return;
      const message: unknown = JSON.parse(data);
      if (typeof message === "object" && message !== null && !("method" in message)) answers.push(data);
    },
  });
  const decoder = new TextDecoder();
  const reader = response.body?.getReader();
  const places: AnswerPlace[] = [];
  let isLost = false;
  try {
    for (let next = await reader?.read(); next && !next.done; next = await reader?.read()) {
      const place = hold(next.value.length);
      places.push(place);
      place.endsBy(() => {
        isLost = true;
        // Ends the pending read. An error of a stream that is no longer needed does not matter.
        reader?.cancel().catch(() => {});
      });
      parser.feed(decoder.decode(next.value, { stream: true }));
    }
  } finally {
    for (const place of places) place.release();
  }
  if (!isLost) return answers;
  throw new Problem(
    "rate_limited",
    "The memory for this answer was needed for newer answers in the workspace.",
    {
      headers: { "Retry-After": "5" },
    },
  );
}
