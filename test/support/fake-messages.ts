/**
 * A scripted upstream that speaks Anthropic's Messages API on a real port. Its answers are set per model, and
 * `requests` keeps the bytes that it was sent.
 */

export interface FakeMessagesRequest {
  /** The path with the query. */
  readonly path: string;
  readonly model: string;
  readonly bytes: Buffer;
  readonly headers: Headers;
  /** True once the caller has hung up before the answer ended. */
  readonly aborted: boolean;
}

export interface MessagesBehaviour {
  /** A whole answer, sent as JSON, or the answer of `count_tokens`. */
  readonly message?: object;
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
  readonly error?: object;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface FakeMessages {
  /** The base URL for the configuration, ending in `/v1`. */
  readonly url: string;
  readonly requests: readonly FakeMessagesRequest[];
  /** The answers of a model from now on: one for all of its requests, or one after another. */
  script(model: string, ...behaviours: readonly MessagesBehaviour[]): void;
  close(): Promise<void>;
}

/** An event of a stream as Anthropic writes it. */
export function sse(event: object): Buffer {
  return Buffer.from(`event: ${Reflect.get(event, "type")}\ndata: ${JSON.stringify(event)}\n\n`);
}

export function startFakeMessages(apiKey: string): FakeMessages {
  const requests: FakeMessagesRequest[] = [];
  const scripts = new Map<string, MessagesBehaviour[]>();
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    development: false,
    error: (error) => errorResponse(500, { type: "api_error", message: String(error) }),
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const bytes = Buffer.from(await request.arrayBuffer());
      const model = String(JSON.parse(bytes.toString()).model);
      const call = { path: pathname + search, model, bytes, headers: request.headers, aborted: false };
      requests.push(call);
      request.signal.addEventListener("abort", () => {
        call.aborted = true;
      });
      if (request.headers.get("x-api-key") !== apiKey || !request.headers.has("anthropic-version")) {
        return errorResponse(401, { type: "authentication_error", message: "invalid x-api-key" });
      }
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

function answer(behaviour: MessagesBehaviour | undefined, signal: AbortSignal): Response {
  const { status = 200, error, headers = {}, message, events = [], parts } = behaviour ?? { status: 404 };
  if (status !== 200) return errorResponse(status, error, headers);
  if (message) return Response.json(message, { headers });
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

/** Sends parts one by one, as the behaviour specifies. */
export async function* play(
  parts: readonly Uint8Array[],
  { cutAfter, hangAfter, gate }: Pick<MessagesBehaviour, "cutAfter" | "hangAfter" | "gate">,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  for (const [index, part] of parts.entries()) {
    if (index === cutAfter) throw new Error("The script cuts here.");
    if (index === hangAfter) {
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    }
    if (index === parts.length - 1) await gate;
    yield new Uint8Array(part);
    // Lets the part be sent separately.
    await Bun.sleep(1);
  }
}

function errorResponse(status: number, error?: object, headers: Readonly<Record<string, string>> = {}) {
  const told = error ?? { type: "api_error", message: `The script answers ${status}.` };
  return Response.json({ type: "error", error: told, request_id: "req_upstream" }, { status, headers });
}
