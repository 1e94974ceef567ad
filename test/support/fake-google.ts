/**
 * A scripted upstream that speaks Google's Gemini API on a real port. Its answers are set per model, and `requests` keeps
 * what it was asked.
 */

export interface FakeGoogleRequest {
  readonly model: string;
  /** The method after the model's name: `generateContent` and so on. */
  readonly method: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary JSON.
  readonly body: any;
  readonly headers: Headers;
  /** True once the caller has hung up before the answer ended. */
  readonly aborted: boolean;
}

type MutableRequest = { -readonly [Name in keyof FakeGoogleRequest]: FakeGoogleRequest[Name] };

export interface GoogleBehaviour {
  /** The parts of the answer, as Gemini writes them: one event each in a stream. */
  readonly parts?: readonly object[];
  readonly finishReason?: string;
  /** How many numbers a vector has. Default: 3. */
  readonly numbers?: number;
  /** Null: no usage is reported. */
  readonly usage?: object | null;
  /** Ends the stream after this many events, without an end of the answer. */
  readonly cutAfter?: number;
  /** Waits after this many events until the caller hangs up. */
  readonly hangAfter?: number;
  /** Awaited before the answer. */
  readonly gate?: Promise<unknown>;
  /** Sent as one more event at the end of a stream, in place of the end of the answer. */
  readonly errorEvent?: object;
  /** Any other status than 200 answers with an error. */
  readonly status?: number;
  readonly message?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface FakeGoogle {
  /** The base URL for the configuration. */
  readonly url: string;
  readonly requests: readonly FakeGoogleRequest[];
  script(model: string, behaviour: GoogleBehaviour): void;
  close(): Promise<void>;
}

const PATH = /^\/v1beta\/models\/([^:]+):(\w+)$/;
export const GOOGLE_USAGE = { promptTokenCount: 7, candidatesTokenCount: 3, totalTokenCount: 10 };

export function startFakeGoogle(apiKey: string): FakeGoogle {
  const requests: FakeGoogleRequest[] = [];
  const scripts = new Map<string, GoogleBehaviour>();
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    development: false,
    error: (error) => errorResponse(500, String(error)),
    async fetch(request) {
      const [, model = "", method = ""] = PATH.exec(new URL(request.url).pathname) ?? [];
      const call: MutableRequest = {
        model,
        method,
        body: await request.json(),
        headers: request.headers,
        aborted: false,
      };
      requests.push(call);
      request.signal.addEventListener("abort", () => {
        call.aborted = true;
      });
      if (request.headers.get("x-goog-api-key") !== apiKey) return errorResponse(401, "API key not valid");
      const behaviour = scripts.get(model) ?? { status: 404 };
      await behaviour.gate;
      const { status = 200, message = `The script answers ${status}.`, headers = {} } = behaviour;
      if (status !== 200) return errorResponse(status, message, headers);
      if (method === "streamGenerateContent") return streamed(behaviour, request.signal);
      if (method === "generateContent") return Response.json(whole(behaviour));
      if (method === "embedContent")
        return Response.json({ embedding: { values: vectorOf(call.body.content, behaviour) } });
      const asked: readonly { content: object }[] = call.body.requests;
      return Response.json({
        embeddings: asked.map(({ content }) => ({ values: vectorOf(content, behaviour) })),
      });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}/v1beta`,
    requests,
    script: (model, behaviour) => void scripts.set(model, behaviour),
    close: () => server.stop(true),
  };
}

/** A vector that tells which text it was made of: its first number is the text's length. */
function vectorOf(content: object, { numbers = 3 }: GoogleBehaviour): number[] {
  const [part] = Reflect.get(content, "parts") as readonly { text: string }[];
  return [part?.text.length ?? 0, 0.5, -0.25, ...Array(numbers - 3).fill(0.125)];
}

function whole({ parts = [], finishReason = "STOP", usage = GOOGLE_USAGE }: GoogleBehaviour): object {
  return {
    candidates: [{ content: { role: "model", parts }, finishReason, index: 0 }],
    ...(usage === null ? {} : { usageMetadata: usage }),
  };
}

function streamed(behaviour: GoogleBehaviour, signal: AbortSignal): Response {
  const { parts = [], cutAfter, hangAfter, errorEvent } = behaviour;
  const events: object[] = parts.map((part) => ({
    candidates: [{ content: { role: "model", parts: [part] }, index: 0 }],
  }));
  events.push(errorEvent ?? { ...whole({ ...behaviour, parts: [] }) });
  async function* play() {
    for (const [index, event] of events.entries()) {
      if (index === cutAfter) return;
      if (index === hangAfter) {
        await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      }
      yield Buffer.from(`data: ${JSON.stringify(event)}\r\n\r\n`);
      // Lets the event be sent separately.
      await Bun.sleep(1);
    }
  }
  const sent = play();
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const next = await sent.next();
      if (next.done) controller.close();
      else controller.enqueue(new Uint8Array(next.value));
    },
  });
  return new Response(stream, { headers: { "content-type": "text/event-stream" } });
}

function errorResponse(
  code: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return Response.json({ error: { code, message, status: "FAILED" } }, { status: code, headers });
}
