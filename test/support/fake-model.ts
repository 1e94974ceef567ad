/**
 * A scripted upstream that speaks OpenAI's chat completions API on a real port, for tests and benchmarks. Its answers
 * are set per model, and `requests` keeps what it was sent.
 */
import { type Behaviour, echo } from "./fake-model/behaviour.ts";
import { type ChatRequestBody, parseChatRequest } from "./fake-model/request.ts";
import { answer, errorResponse } from "./fake-model/response.ts";

export type { Behaviour, ToolCallScript, UsageScript } from "./fake-model/behaviour.ts";
export type { ChatMessage, ChatRequestBody } from "./fake-model/request.ts";

/** One call as received. */
export interface FakeModelRequest {
  readonly model: string;
  readonly body: ChatRequestBody;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Milliseconds since the Unix epoch. */
  readonly receivedAt: number;
  /** True as soon as the caller has hung up before the answer ended. */
  readonly aborted: boolean;
}

/** A fixed answer, or a function of the request and the number of earlier calls to the model. */
export type Script = Behaviour | ((request: FakeModelRequest, callIndex: number) => Behaviour);

export interface FakeModelOptions {
  /** Default: any free port. */
  readonly port?: number;
  /** If set, any other bearer token is answered with 401. */
  readonly apiKey?: string;
  /** The answer of models without a script. Default: `You said: <last user text>` in several chunks, with usage. */
  readonly fallback?: Script;
  /** False keeps `requests` empty, for long benchmarks. */
  readonly record?: boolean;
}

export interface FakeModel {
  /** The base URL for clients, ending in `/v1`. */
  readonly url: string;
  /** Every requested chat completion, oldest first. */
  readonly requests: readonly FakeModelRequest[];
  /** Sets the answer of `model` from now on, and restarts the count of its calls at 0. */
  script(model: string, script: Script): void;
  /** Stops at once and cuts open connections. */
  close(): Promise<void>;
}

export function startFakeModel(options: FakeModelOptions = {}): FakeModel {
  const requests: FakeModelRequest[] = [];
  const scripts = new Map<string, { script: Script; calls: number }>();
  const fallback = options.fallback ?? echo;

  function scriptOf(model: string): { script: Script; calls: number } {
    let entry = scripts.get(model);
    if (entry === undefined) {
      entry = { script: fallback, calls: 0 };
      scripts.set(model, entry);
    }
    return entry;
  }

  async function complete(request: Request): Promise<Response> {
    const parsed = parseChatRequest(await request.text());
    if (typeof parsed === "string") return errorResponse(400, parsed);
    const call = {
      model: parsed.model,
      body: parsed,
      headers: Object.fromEntries(request.headers),
      receivedAt: Date.now(),
      aborted: false,
    };
    if (options.record !== false) requests.push(call);
    let ended = false;
    request.signal.addEventListener("abort", () => {
      if (!ended) call.aborted = true;
    });
    const entry = scriptOf(parsed.model);
    const callIndex = entry.calls++;
    const behaviour = typeof entry.script === "function" ? entry.script(call, callIndex) : entry.script;
    const markEnded = () => {
      ended = true;
    };
    try {
      return await answer(parsed, behaviour, request.signal, markEnded);
    } catch (error) {
      if (request.signal.aborted) return new Response(null, { status: 499 }); // nobody is left to read this
      throw error;
    }
  }

  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: options.port ?? 0,
    idleTimeout: 0,
    development: false, // in development mode, an intentionally broken stream is printed as an error
    error: (error) => errorResponse(500, String(error)),
    fetch(request) {
      const { pathname } = new URL(request.url);
      const bearer = request.headers.get("authorization");
      if (options.apiKey !== undefined && bearer !== `Bearer ${options.apiKey}`) {
        return errorResponse(401, "Incorrect API key provided.");
      }
      if (pathname === "/v1/chat/completions" && request.method === "POST") return complete(request);
      if (pathname === "/v1/models" && request.method === "GET") {
        const data = [...scripts.keys()].map((id) => ({ id, object: "model", created: 0, owned_by: "fake" }));
        return Response.json({ object: "list", data });
      }
      return errorResponse(404, `Unknown request: ${request.method} ${pathname}`);
    },
  });

  return {
    url: `http://127.0.0.1:${server.port}/v1`,
    requests,
    script: (model, script) => void scripts.set(model, { script, calls: 0 }),
    close: () => server.stop(true),
  };
}
