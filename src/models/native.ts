import { AnswerTooLarge } from "../agents/index.ts";
import type { Clock } from "../base/clock.ts";
import { Inflow } from "../base/inflow.ts";
import { createMask } from "../base/masking/mask.ts";
import { openFilesReserve } from "../base/open-files/reserve.ts";
import { requireUncompressed, uncompressed } from "../base/uncompressed.ts";
import type { ProviderConfig, ProviderKind } from "../config/config.ts";
import { AnswerShare } from "./answer-memory.ts";
import { baseUrlOf, queryOf } from "./providers/base-url.ts";
import { SilenceTimer } from "./silence.ts";

/** The model APIs that clients know, by their names in the ledger. */
export type Dialect = "chat_completions" | "responses" | "messages" | "embeddings";

/** A provider's endpoint for requests in one dialect, with its credentials. */
export interface NativeEndpoint {
  readonly url: string;
  /** The query of each request, including its question mark; may be empty. */
  readonly query: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The maximum number of bytes in an answer. */
  readonly mostBytes: number;
  /** Masks the provider's address and credentials. */
  readonly hide: (text: string) => string;
}

const PATHS: Readonly<Record<Dialect, string>> = {
  chat_completions: "/chat/completions",
  responses: "/responses",
  messages: "/messages",
  embeddings: "/embeddings",
};

/** The dialects that each kind of provider speaks itself. */
const SPOKEN: Readonly<Record<ProviderKind, readonly Dialect[]>> = {
  "openai-compatible": ["chat_completions", "embeddings"],
  openai: ["chat_completions", "responses", "embeddings"],
  azure: ["chat_completions", "responses", "embeddings"],
  anthropic: ["messages"],
  google: [],
  bedrock: [],
  vertex: [],
};

/** The header that carries a provider's key. Default: a bearer token. */
const KEY_HEADERS: Readonly<Partial<Record<ProviderKind, string>>> = {
  azure: "api-key",
  anthropic: "x-api-key",
};

const MIB = 1024 * 1024;
/**
 * The maximum number of bytes in an answer. All answers except vectors are kept as evidence. 2,048 vectors, the most
 * that OpenAI makes at once, may take 60 MB.
 */
const MOST_BYTES: Readonly<Record<Dialect, number>> = {
  chat_completions: 16 * MIB,
  responses: 16 * MIB,
  messages: 16 * MIB,
  embeddings: 64 * MIB,
};

/**
 * Null if the provider does not support the dialect.
 * @param hide made by `hideSecrets`
 */
export function nativeEndpoint(
  config: ProviderConfig,
  dialect: Dialect,
  hide: NativeEndpoint["hide"],
): NativeEndpoint | null {
  const { kind, apiKey, headers = {} } = config;
  if (!SPOKEN[kind].includes(dialect)) return null;
  const header = KEY_HEADERS[kind];
  const credentials: Record<string, string> =
    apiKey === undefined
      ? {}
      : header === undefined
        ? { authorization: `Bearer ${apiKey}` }
        : { [header]: apiKey };
  return {
    url: baseUrlOf(config) + PATHS[dialect],
    query: queryOf(config),
    headers: { ...credentials, ...lowerCased(headers) },
    mostBytes: MOST_BYTES[dialect],
    hide,
  };
}

/** Shorter header values are not secrets, and may be words. */
const LEAST_SECRET = 8;
const NONE: readonly string[] = [];

/**
 * Masks a provider's address and its credentials in text from that provider, in every form of `formsOf`.
 * @param issued the secrets issued so far. MUST be a new array whenever they change
 */
export function hideSecrets(
  config: ProviderConfig,
  issued: () => readonly string[] = () => NONE,
): (text: string) => string {
  const { apiKey, accessKeyId, secretAccessKey, sessionToken, credentials = "", headers = {} } = config;
  const secrets = [
    ...[apiKey ?? "", accessKeyId ?? "", secretAccessKey ?? "", sessionToken ?? ""],
    ...[credentials, ...privateKeysIn(credentials)],
    ...Object.values(headers).flatMap(secretsIn),
    ...secretsOfUrl(baseUrlOf(config)),
  ];
  const maskOf = (more: readonly string[]) =>
    createMask([...new Set([...secrets, ...more])].filter(({ length }) => length >= LEAST_SECRET));
  let known = issued();
  let mask = maskOf(known);
  return (given) => {
    const current = issued();
    if (current !== known) mask = maskOf(current);
    known = current;
    return mask.text(given);
  };
}

/** A header's value, its parts, and the content encoded by `Basic`. */
function secretsIn(value: string): string[] {
  const [, encoded] = /^basic\s+(\S+)/i.exec(value) ?? [];
  const decoded = encoded === undefined ? "" : Buffer.from(encoded, "base64").toString();
  return [value, ...value.split(/\s+/), decoded, decoded.slice(decoded.indexOf(":") + 1)];
}

function secretsOfUrl(url: string): string[] {
  const { host, hostname, password } = new URL(url);
  return [url, host, hostname, password, unescaped(password)];
}

/** `%` in a password need not begin an escape. */
function unescaped(password: string): string {
  return password.replace(/(?:%[0-9a-f]{2})+/gi, (codes) =>
    Buffer.from(codes.replaceAll("%", ""), "hex").toString(),
  );
}

/** The key of a service account, whole and line by line: a message may show a single line. */
function privateKeysIn(credentials: string): string[] {
  const [, escaped] = /"private_key"\s*:\s*("(?:[^"\\]|\\.)*")/.exec(credentials) ?? [];
  if (escaped === undefined) return [];
  const key = String(JSON.parse(escaped));
  return [key, ...key.split("\n").filter((line) => !line.startsWith("-----"))];
}

function lowerCased(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

/** A request in a provider's own dialect. */
export interface NativeRequest {
  /** The text appended to the endpoint's URL: a path below it, or a query. */
  readonly suffix: string;
  readonly body: Uint8Array<ArrayBuffer>;
  /** The client's headers that are passed on. The provider's own headers take precedence. */
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** The workspace whose turns are used to read the answer. */
  readonly workspaceId: number;
}

/**
 * Sends a request and waits for the head of its answer.
 * @throws a TimeoutError if nothing arrives for `timeoutMs`; the signal's reason; fetch's errors
 */
export async function sendNative(
  endpoint: NativeEndpoint,
  { suffix, body, headers, signal, workspaceId }: NativeRequest,
  timeoutMs: number,
  clock: Clock,
): Promise<NativeAnswer> {
  const silence = new SilenceTimer(timeoutMs, clock);
  const either = AbortSignal.any([signal, silence.signal]);
  const timedOut = silence.begin();
  // Once the answer has begun, `read` throws the reason.
  timedOut.catch(ignore);
  try {
    const url = withQuery(endpoint.url + suffix, endpoint.query);
    const opening = request({ ...endpoint, url }, headers, body, either);
    // If the timeout wins the race, the later rejection of the request must not surface as unhandled.
    opening.catch(ignore);
    const response = await Promise.race([opening, timedOut]);
    silence.pause();
    return new NativeAnswer(response, endpoint, silence, new Inflow(clock, workspaceId));
  } catch (error) {
    silence.end();
    throw silence.reason(error);
  }
}

function withQuery(url: string, query: string): string {
  return url.includes("?") ? url + query.replace("?", "&") : url + query;
}

/**
 * Defined here, because a function created inside an async function keeps all variables of that function alive,
 * including bodies.
 */
function ignore(): void {}

async function request(
  { url, headers: own }: NativeEndpoint,
  passed: Readonly<Record<string, string>>,
  body: Uint8Array<ArrayBuffer>,
  signal: AbortSignal,
): Promise<Response> {
  await openFilesReserve.untilRoom(signal);
  const headers = { ...passed, "content-type": "application/json", ...own };
  const options = { method: "POST", body, signal, redirect: "error" } as const;
  return requireUncompressed(await fetch(url, { ...options, ...uncompressed(headers) }));
}

/** An answer whose body is read part by part, at the reader's pace. MUST be ended, even if it was read to its end. */
export class NativeAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** Masks the provider's URL and the credentials sent to it. */
  readonly hide: (text: string) => string;
  readonly #reader:
    | { read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>; cancel(): Promise<void> }
    | undefined;
  readonly #silence: SilenceTimer;
  readonly #inflow: Inflow;
  readonly #share = new AnswerShare();
  #bytes = 0;
  readonly #mostBytes: number;

  constructor(
    { status, headers, body }: Response,
    endpoint: NativeEndpoint,
    silence: SilenceTimer,
    inflow: Inflow,
  ) {
    this.hide = endpoint.hide;
    this.#mostBytes = endpoint.mostBytes;
    this.status = status;
    this.headers = headers;
    this.#reader = body?.getReader();
    this.#silence = silence;
    this.#inflow = inflow;
    // A silent answer fails at once.
    this.#share.signal.addEventListener("abort", () => this.end(), { once: true });
  }

  /** The error if its memory was needed, even after it was read; otherwise null. */
  get failure(): Error | null {
    return this.#share.failure;
  }

  /**
   * The next bytes; undefined at the end. Reading is paced, so that an endless answer does not block other calls.
   * @throws a TimeoutError if nothing arrives for the provider's timeout; AnswerTooLarge
   */
  async read(): Promise<Uint8Array | undefined> {
    this.#silence.resume();
    try {
      const part = await this.#reader?.read();
      if (this.failure) throw this.failure;
      if (this.#silence.signal.aborted) throw this.#silence.signal.reason;
      this.#silence.pause();
      if (!part?.value) {
        this.#silence.end();
        return undefined;
      }
      this.#bytes += part.value.length;
      if (this.#bytes > this.#mostBytes) throw new AnswerTooLarge("The model's answer is too large.");
      this.#share.add(part.value.length);
      const wait = this.#inflow.take({ bytes: part.value.length, messages: 1 });
      if (wait) await wait;
      return part.value;
    } catch (error) {
      this.end();
      throw this.#silence.reason(error);
    }
  }

  /** Ends the request if it is still in progress, and gives up the answer's memory. */
  end(): void {
    this.#silence.end();
    this.#share.leave();
    // Nothing more is read, so a connection error no longer matters.
    this.#reader?.cancel().catch(() => {});
  }
}
