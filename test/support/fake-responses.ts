/**
 * A scripted upstream that speaks OpenAI's Responses API on a real port. Its answers are set per model, and `requests`
 * keeps the bytes that it was sent.
 */
import { play, sse } from "./fake-messages.ts";

export interface FakeResponsesRequest {
  readonly method: string;
  /** The path with the query. */
  readonly path: string;
  readonly model: string;
  readonly bytes: Buffer;
  readonly headers: Headers;
  /** True once the caller has hung up before the answer ended. */
  readonly aborted: boolean;
}

export interface ResponsesBehaviour {
  /** A whole answer, sent as JSON. */
  readonly response?: object;
  /** The events of a stream. */
  readonly events?: readonly object[];
  /** Sent instead of `events`, each part in a separate write. */
  readonly parts?: readonly Uint8Array[];
  /** Breaks the connection after this many events or parts. */
  readonly cutAfter?: number;
  /** Awaited after this many events or parts, until the caller hangs up. */
  readonly hangAfter?: number;
  /** Awaited before the last event or part. */
  readonly gate?: Promise<unknown>;
  /** Any other status than 200 answers with an error. */
  readonly status?: number;
  readonly message?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface FakeResponses {
  /** The base URL for the configuration, ending in `/v1`. */
  readonly url: string;
  readonly requests: readonly FakeResponsesRequest[];
  /** The answers of a model from now on: one for all of its requests, or one after the other. */
  script(model: string, ...behaviours: readonly ResponsesBehaviour[]): void;
  close(): Promise<void>;
}

export function startFakeResponses(apiKey: string): FakeResponses {
  const requests: FakeResponsesRequest[] = [];
  const scripts = new Map<string, ResponsesBehaviour[]>();
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    development: false,
    error: (error) => errorResponse(500, String(error)),
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const bytes = Buffer.from(await request.arrayBuffer());
      const model = bytes.length === 0 ? "" : String(JSON.parse(bytes.toString()).model);
      const { method, headers } = request;
      const call = { method, path: pathname + search, model, bytes, headers, aborted: false };
      requests.push(call);
      request.signal.addEventListener("abort", () => {
        call.aborted = true;
      });
      if (headers.get("authorization") !== `Bearer ${apiKey}`) return errorResponse(401, "Incorrect API key");
      const script = scripts.get(model) ?? [];
      return answer(script.length > 1 ? script.shift() : script[0], request.signal);
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}/v1`,
    requests,
    script: (model, ...behaviours) => void scripts.set(model, [...behaviours]),
    close: () => server.stop(true),
  };
}

function answer(behaviour: ResponsesBehaviour | undefined, signal: AbortSignal): Response {
  const { status = 200, message, headers = {}, response, events = [], parts } = behaviour ?? { status: 404 };
  if (status !== 200) return errorResponse(status, message ?? `The script answers ${status}.`, headers);
  if (response) return Response.json(response, { headers });
  const sent = play(parts ?? events.map(sse), behaviour ?? {}, signal);
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const next = await sent.next();
      if (next.done) controller.close();
      else controller.enqueue(next.value);
    },
  });
  return new Response(stream, {
    headers: { "content-type": "text/event-stream; charset=utf-8", ...headers },
  });
}

function errorResponse(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
  const error = { message, type: "invalid_request_error", param: null, code: null };
  return Response.json({ error }, { status, headers });
}
