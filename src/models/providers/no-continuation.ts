/**
 * A `fetch` that never sends the continuation of an answer. If an answer is longer than one request may return,
 * Google ends it with a token, and its package then requests the rest, as many times as the server likes. Each
 * request to a provider needs its own intent, so the package gets a reply from here instead: the answer ends at its
 * maximum length.
 */
export function withoutContinuation(inner: typeof fetch): typeof fetch {
  const sending = async (
    input: string | URL | Request,
    init?: RequestInit | BunFetchRequestInit,
  ): Promise<Response> => (isContinuation(init?.body) ? ending(String(input)) : inner(input, init));
  return Object.assign(sending, { preconnect: inner.preconnect });
}

const MEMBER = "continuationToken";

function isContinuation(body: unknown): boolean {
  // Most requests do not contain the word, and are not parsed.
  if (typeof body !== "string" || !body.includes(`"${MEMBER}"`)) return false;
  const value: unknown = JSON.parse(body);
  return typeof value === "object" && value !== null && Object.hasOwn(value, MEMBER);
}

function ending(url: string): Response {
  const end = JSON.stringify({ candidates: [{ finishReason: "MAX_TOKENS" }] });
  if (!url.includes(":stream")) return new Response(end, { headers: { "content-type": "application/json" } });
  return new Response(`data: ${end}\n\n`, { headers: { "content-type": "text/event-stream" } });
}
