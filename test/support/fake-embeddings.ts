/**
 * A scripted upstream that speaks OpenAI's embeddings API on a real port. Its vectors are made from a text's words,
 * so texts that share words are always close to each other.
 */

/** One call as received. */
export interface EmbeddingsRequest {
  readonly model: string;
  readonly input: readonly string[];
  readonly encoding: "float" | "base64";
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** True as soon as the caller has hung up before receiving an answer. */
  readonly aborted: boolean;
}

/** What the fake does with one call. An empty object means a correct answer. */
export interface EmbeddingsBehaviour {
  /** Any status except 200 is answered with an error in JSON. */
  readonly status?: number;
  /** The error's text. */
  readonly message?: string;
  /** Headers added to the response. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Takes the call and never answers. */
  readonly hang?: true;
  /** Awaited before the answer. */
  readonly gate?: Promise<unknown>;
  /** Breaks the connection in the middle of the answer. */
  readonly close?: true;
  /** Sends this many vectors, however many were requested. */
  readonly count?: number;
  /** Sends vectors with this many dimensions, only this once. */
  readonly dims?: number;
  /** Replaces the last vector's first number; servers turn NaN into null. */
  readonly value?: number | null;
  /** Makes all vectors zero. */
  readonly zero?: true;
  /** Sends the vectors in reverse order, each with its index. */
  readonly reversed?: true;
  /** A body sent as it is. */
  readonly body?: string;
}

/** A behaviour, or a function of the call and the number of earlier calls. */
export type EmbeddingsScript =
  | EmbeddingsBehaviour
  | ((request: EmbeddingsRequest, index: number) => EmbeddingsBehaviour);

export interface FakeEmbeddingsOptions {
  /** Dimensions of the vectors. Default: 64. */
  readonly dims?: number;
  /** If set, any other bearer token is answered with 401. */
  readonly key?: string;
}

export interface FakeEmbeddings {
  /** The base URL for clients, which ends in `/v1`. */
  readonly baseUrl: string;
  /** Every well-formed call with a valid key, oldest first. */
  readonly requests: readonly EmbeddingsRequest[];
  /** Resolves once `count` calls have arrived since the start. */
  arrived(count: number): Promise<void>;
  /**
   * Scripts the next calls, one behaviour each, and replaces any earlier script. Afterwards calls are answered
   * correctly again.
   */
  script(...steps: readonly EmbeddingsScript[]): void;
  /** Sets the behaviour of every call that is not scripted. `{}` resets it. */
  always(script: EmbeddingsScript): void;
  /** Stops at once and cuts open connections. */
  stop(): Promise<void>;
}

export function startFakeEmbeddings({ dims = 64, key }: FakeEmbeddingsOptions = {}): FakeEmbeddings {
  const requests: EmbeddingsRequest[] = [];
  const waiting: { readonly count: number; readonly resolve: () => void }[] = [];
  let steps: EmbeddingsScript[] = [];
  let standing: EmbeddingsScript = {};

  async function embed(request: Request): Promise<Response> {
    const asked = parse(await request.text());
    if (typeof asked === "string") return refusal(400, asked);
    const call = { ...asked, headers: Object.fromEntries(request.headers), aborted: false };
    let answered = false;
    request.signal.addEventListener("abort", () => {
      call.aborted ||= !answered;
    });
    const index = requests.push(call) - 1;
    for (const { count, resolve } of waiting) if (requests.length >= count) resolve();
    const script = steps.shift() ?? standing;
    const behaviour = typeof script === "function" ? script(call, index) : script;
    try {
      await Promise.race([behaviour.hang ? never : behaviour.gate, hangUp(request.signal)]);
      answered = true;
      return answer(call, behaviour, behaviour.dims ?? dims);
    } catch {
      return new Response(null, { status: 499 }); // nobody is left to read this
    }
  }

  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    development: false, // in development mode, an intentionally broken stream is printed as an error
    error: (error) => refusal(500, String(error)),
    fetch(request) {
      if (key !== undefined && request.headers.get("authorization") !== `Bearer ${key}`)
        return refusal(401, `Incorrect API key provided: ${request.headers.get("authorization")}`);
      const { pathname } = new URL(request.url);
      if (pathname === "/v1/embeddings" && request.method === "POST") return embed(request);
      return refusal(404, `Unknown request: ${request.method} ${pathname}`);
    },
  });

  return {
    baseUrl: `http://127.0.0.1:${server.port}/v1`,
    requests,
    arrived: (count) =>
      new Promise((resolve) => {
        if (requests.length >= count) resolve();
        else waiting.push({ count, resolve });
      }),
    script(...next) {
      steps = [...next];
    },
    always(script) {
      standing = script;
    },
    stop: () => server.stop(true),
  };
}

/**
 * A text's vector, of unit length. Each word (letters and digits, in lower case) adds 1 or -1 in three places chosen
 * by its hash. A text without words has its whole length in the first place.
 */
export function fakeVector(text: string, dims: number): number[] {
  const vector = new Array<number>(dims).fill(0);
  for (const word of text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []) {
    for (let seed = 0; seed < 3; seed++) {
      const hash = Bun.hash.xxHash32(word, seed);
      const place = (hash >>> 1) % dims;
      vector[place] = (vector[place] ?? 0) + (hash & 1 ? 1 : -1);
    }
  }
  const length = Math.hypot(...vector);
  if (length === 0) return vector.map((_, place) => (place === 0 ? 1 : 0));
  return vector.map((value) => value / length);
}

const never = new Promise<never>(() => {});

function answer(call: EmbeddingsRequest, behaviour: EmbeddingsBehaviour, dims: number): Response {
  const { status = 200, message = `The script answers ${status}.`, headers = {} } = behaviour;
  if (status !== 200) return refusal(status, message, headers);
  if (behaviour.close) return new Response(broken(), { headers: { "content-type": "application/json" } });
  const texts = Array.from({ length: behaviour.count ?? call.input.length }, (_, at) => call.input[at] ?? "");
  const vectors: (number | null)[][] = texts.map((text) =>
    behaviour.zero ? new Array<number>(dims).fill(0) : fakeVector(text, dims),
  );
  const last = vectors.at(-1);
  if (behaviour.value !== undefined && last) last[0] = behaviour.value;
  const data = vectors.map((vector, index) => ({
    object: "embedding",
    index,
    embedding: call.encoding === "base64" ? base64(vector) : vector,
  }));
  if (behaviour.reversed) data.reverse();
  const tokens = call.input.reduce((sum, text) => sum + Math.ceil(text.length / 4), 0);
  const usage = { prompt_tokens: tokens, total_tokens: tokens };
  const body = behaviour.body ?? JSON.stringify({ object: "list", data, model: call.model, usage });
  return new Response(body, { headers: { "content-type": "application/json", ...headers } });
}

/** An error in OpenAI's format. */
function refusal(status: number, message: string, headers: Readonly<Record<string, string>> = {}): Response {
  const type = status === 429 ? "rate_limit_error" : status >= 500 ? "server_error" : "invalid_request_error";
  return Response.json({ error: { message, type, param: null, code: null } }, { status, headers });
}

/** Little-endian float32 numbers, as OpenAI sends them. */
function base64(vector: readonly (number | null)[]): string {
  const bytes = new DataView(new ArrayBuffer(vector.length * 4));
  for (const [place, value] of vector.entries()) bytes.setFloat32(place * 4, value ?? Number.NaN, true);
  return Buffer.from(bytes.buffer).toString("base64");
}

function broken(): ReadableStream<Uint8Array> {
  let sent = false;
  return new ReadableStream({
    pull(controller) {
      if (sent) throw new Error("The script cuts here.");
      sent = true;
      controller.enqueue(new TextEncoder().encode('{"object":"list","data":['));
    },
  });
}

/** Rejects when the caller hangs up. */
function hangUp(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) return reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

/** The body's model, texts and encoding, or what is wrong with the body. As strict as OpenAI. */
function parse(text: string): Pick<EmbeddingsRequest, "model" | "input" | "encoding"> | string {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return "We could not parse the JSON body of your request.";
  }
  if (!isRecord(body)) return "The body is no object.";
  const { model, input, encoding_format: encoding = "float" } = body;
  if (typeof model !== "string" || model === "") return "'model' is missing.";
  if (encoding !== "float" && encoding !== "base64") return "'encoding_format' must be float or base64.";
  const texts: unknown[] = typeof input === "string" ? [input] : Array.isArray(input) ? input : [];
  if (texts.length === 0 || texts.length > 2_048) return "'input' must hold 1 to 2048 texts.";
  const strings = texts
    .filter((each) => typeof each === "string")
    .filter((each) => each.isWellFormed() && each);
  if (strings.length !== texts.length)
    return "'input' contains something that is not text, or an empty text.";
  return { model, input: strings, encoding };
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
