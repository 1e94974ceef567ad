/** A client of the MCP endpoint that sees everything on the wire: status, headers and every message. */
import { createParser } from "eventsource-parser";
import type { TestGateway } from "../support/gateway.ts";

export const VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] as const;
export const BOTH = "application/json, text/event-stream";

/** A JSON-RPC message as received. */
// biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary JSON.
export type Message = any;

export interface Posted {
  readonly status: number;
  readonly headers: Headers;
  /** The messages of a stream, or the one in a JSON body, or the JSON of the endpoint's refusal. */
  readonly messages: readonly Message[];
  /** The last message: the answer, if one request was sent. */
  readonly last: Message;
}

export interface PostOptions {
  readonly path?: string;
  readonly token?: string | null;
  readonly headers?: Record<string, string>;
  /** Sent as it is, instead of the body. */
  readonly raw?: string;
  readonly signal?: AbortSignal;
}

let lastId = 0;

export function request(method: string, params?: object): object & { readonly id: number } {
  lastId += 1;
  const message = { jsonrpc: "2.0", id: lastId, method, ...(params ? { params } : {}) };
  return message;
}

export function hello(version: string = "2025-11-25"): object {
  const params = { protocolVersion: version, capabilities: {}, clientInfo: { name: "tests", version: "1" } };
  return request("initialize", params);
}

function headersOf(gateway: TestGateway, { token, headers = {} }: PostOptions): Headers {
  const sent = new Headers({ accept: BOTH, ...headers });
  if (token !== null) sent.set("authorization", `Bearer ${token ?? gateway.admin}`);
  return sent;
}

/** Posts without reading the answer, for streams that a test reads as they arrive. */
export function postOpen(gateway: TestGateway, body: unknown, options: PostOptions = {}): Promise<Response> {
  const headers = headersOf(gateway, options);
  if (!headers.has("content-type")) headers.set("content-type", "application/json");
  return fetch(gateway.url + (options.path ?? "/mcp"), {
    method: "POST",
    headers,
    body: options.raw ?? JSON.stringify(body),
    ...(options.signal ? { signal: options.signal } : {}),
  });
}

export async function post(gateway: TestGateway, body: unknown, options: PostOptions = {}): Promise<Posted> {
  const response = await postOpen(gateway, body, options);
  const text = await response.text();
  const { status, headers } = response;
  const type = headers.get("content-type") ?? "";
  const messages = /json/.test(type) ? [JSON.parse(text)].flat() : messagesOf(text);
  return { status, headers, messages, last: messages.at(-1) };
}

export function messagesOf(stream: string): Message[] {
  const messages: Message[] = [];
  const parser = createParser({ onEvent: ({ data }) => data !== "" && messages.push(JSON.parse(data)) });
  parser.feed(stream);
  return messages;
}

/** A session with one token. */
export interface Client {
  readonly id: string;
  readonly version: string;
  /**
   * Sends a request and returns its result.
   * @throws Error with the JSON-RPC error as `rpc`
   */
  ask(method: string, params?: object, options?: PostOptions): Promise<Message>;
  /** Sends a request and returns its JSON-RPC error, or the problem's JSON. */
  refusal(method: string, params?: object): Promise<Message>;
  post(body: unknown, options?: PostOptions): Promise<Posted>;
  open(body: unknown, options?: PostOptions): Promise<Response>;
  tell(method: string, params?: object): Promise<Posted>;
  /** Calls a tool and returns its result. */
  call(name: string, input?: object): Promise<Message>;
  toolNames(): Promise<string[]>;
  /** Opens the stream for the server's own messages. */
  listen(headers?: Record<string, string>): Promise<Stream>;
  end(): Promise<number>;
}

export async function connect(
  gateway: TestGateway,
  options: { readonly token?: string; readonly version?: string; readonly path?: string } = {},
): Promise<Client> {
  const { version = "2025-11-25", path = "/mcp" } = options;
  const credential = options.token === undefined ? {} : { token: options.token };
  const hi = await post(gateway, hello(version), { ...credential, path });
  const id = hi.headers.get("mcp-session-id");
  if (hi.status !== 200 || id === null)
    throw new Error(`no session: ${hi.status} ${JSON.stringify(hi.last)}`);
  const session = { "mcp-session-id": id, "mcp-protocol-version": version };
  const with_ = (more: PostOptions = {}): PostOptions => ({
    path,
    ...credential,
    ...more,
    headers: { ...session, ...more.headers },
  });
  const client: Client = {
    id,
    version: hi.last.result.protocolVersion,
    post: (body, more) => post(gateway, body, with_(more)),
    open: (body, more) => postOpen(gateway, body, with_(more)),
    async ask(method, params, more) {
      const { last } = await client.post(request(method, params), more);
      if (last?.result === undefined) throw new Error(`${method} was refused: ${JSON.stringify(last)}`);
      return last.result;
    },
    async refusal(method, params) {
      const { last } = await client.post(request(method, params));
      if (last === undefined) throw new Error(`${method} was not answered`);
      if (last.result !== undefined) throw new Error(`${method} was taken: ${JSON.stringify(last.result)}`);
      return last.error ?? last;
    },
    tell: (method, params) => client.post({ jsonrpc: "2.0", method, ...(params ? { params } : {}) }),
    call: (name, input = {}) => client.ask("tools/call", { name, arguments: input }),
    toolNames: async () => (await client.ask("tools/list")).tools.map(({ name }: { name: string }) => name),
    async listen(headers = {}) {
      const options = with_({ headers: { accept: "text/event-stream", ...headers } });
      return openStream(gateway, path, headersOf(gateway, options));
    },
    async end() {
      const sent = headersOf(gateway, with_());
      const response = await fetch(gateway.url + path, { method: "DELETE", headers: sent });
      await response.text();
      return response.status;
    },
  };
  const told = await client.tell("notifications/initialized");
  if (told.status !== 202) throw new Error(`initialized: ${told.status}`);
  return client;
}

export interface Event {
  readonly event: string;
  readonly id: string;
  readonly data: string;
}

/** A stream that is read as it arrives. */
export interface Stream {
  readonly status: number;
  readonly headers: Headers;
  readonly events: readonly Event[];
  /**
   * Resolves with the first matching event, including earlier ones.
   * @throws Error if the stream ends without one
   */
  saw(fits: (event: Event) => boolean): Promise<Event>;
  /** Resolves when the stream has ended, whichever side ended it. */
  readonly ended: Promise<void>;
  /** The text of the answer's body so far. */
  text(): string;
  leave(): void;
}

export async function openStream(gateway: TestGateway, path: string, headers: Headers): Promise<Stream> {
  const abort = new AbortController();
  const response = await fetch(gateway.url + path, { headers, signal: abort.signal });
  return watch(response, abort);
}

export function watch(response: Response, abort = new AbortController()): Stream {
  const events: Event[] = [];
  let text = "";
  let isOver = false;
  let wake = Promise.withResolvers<void>();
  const parser = createParser({
    onEvent: ({ event = "", id = "", data }) => void events.push({ event, id, data }),
  });
  async function read(): Promise<void> {
    const decoder = new TextDecoder();
    try {
      for await (const chunk of response.body ?? []) {
        const piece = decoder.decode(chunk, { stream: true });
        text += piece;
        parser.feed(piece);
        wake.resolve();
        wake = Promise.withResolvers();
      }
    } catch {
      // The stream was abandoned or broken off. What arrived is kept.
    }
    isOver = true;
    wake.resolve();
  }
  const ended = read();
  return {
    status: response.status,
    headers: response.headers,
    events,
    async saw(fits) {
      for (;;) {
        const found = events.find(fits);
        if (found) return found;
        if (isOver) throw new Error(`the stream has ended: ${text.slice(0, 500)}`);
        await wake.promise;
      }
    },
    ended,
    text: () => text,
    leave: () => abort.abort(),
  };
}

export const isMessage =
  (method: string) =>
  ({ data }: Event): boolean =>
    data.includes(`"method":"${method}"`);

/**
 * Adds an upstream over HTTP.
 * @returns the connector
 */
export async function addConnector(
  gateway: TestGateway,
  name: string,
  url: string,
  { token, ...more }: { readonly token?: string; readonly scopes?: readonly string[] } = {},
): Promise<Message> {
  const body = { name, kind: "mcp", transport: { type: "http", url }, ...more };
  const answer = await gateway.call("POST", "/v1/connectors", { body, ...(token ? { token } : {}) });
  if (answer.status !== 201) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body;
}
