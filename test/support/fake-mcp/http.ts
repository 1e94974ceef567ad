/** A scripted MCP server over HTTP on a real port: Streamable HTTP at `/mcp`, the older HTTP+SSE at `/sse`. */
import { type Message, type Script, Upstream } from "./upstream.ts";

/**
 * How a request is answered, instead of according to MCP.
 *
 * - `status`: with that status and body
 * - `redirect`: to that URL
 * - `flood`: with an endless 100 MB, as JSON or as one event
 * - `broken`: with a stream that is cut off before the answer; `priming` first sends the id of an event
 * - `ended`: with a stream that ends without the answer
 * - `empty`: with 202 and no body
 * - `other`: with an answer to something else
 * - `garbage`: with a stream of events that are not JSON-RPC
 * - `lingers`: with an answer, on a stream that it leaves open
 * - `hang`: never
 */
export type Fault =
  | { readonly kind: "status"; readonly status: number; readonly body: string }
  | { readonly kind: "redirect"; readonly to: string }
  | { readonly kind: "flood"; readonly as: "json" | "stream" }
  | { readonly kind: "broken"; readonly priming?: boolean }
  | { readonly kind: "lingers"; readonly left: () => void }
  | { readonly kind: "ended" | "empty" | "other" | "garbage" | "hang" };

export interface FakeMcpOptions {
  readonly script?: Script;
  /** Default: `stream`. */
  readonly answers?: "json" | "stream";
  /** The fault for a request; undefined means a correct answer. Called once per request. */
  readonly fault?: (message: Message, request: Request) => Fault | undefined;
  readonly port?: number;
}

export interface FakeMcp {
  readonly url: string;
  readonly sseUrl: string;
  readonly port: number;
  /** The method of each message, and of each GET and DELETE, in order of arrival. */
  readonly heard: readonly string[];
  /** Headers of the last request. */
  lastHeaders(): Readonly<Record<string, string>>;
  /** Bytes that a flood had sent when its reader left. */
  flooded(): number;
  /** Forgets all sessions, as a restarted server does. */
  forget(): void;
  /** Ends the open streams without a message. */
  hangUp(): void;
  close(): Promise<void>;
}

interface Session {
  readonly upstream: Upstream;
  /** Receives messages that do not belong to a request. */
  listener: ReadableStreamDefaultController<Uint8Array> | undefined;
  /** Receives the answer to the current request. */
  answer: ((message: object) => void) | undefined;
}

const FLOOD_BYTES = 100_000_000;
const encoder = new TextEncoder();
const frame = (message: object): Uint8Array =>
  encoder.encode(`event: message\ndata: ${JSON.stringify(message)}\n\n`);

export function startFakeMcp(options: FakeMcpOptions = {}): FakeMcp {
  const sessions = new Map<string, Session>();
  const heard: string[] = [];
  let headers: Readonly<Record<string, string>> = {};
  let flooded = 0;
  let made = 0;

  function openSession(): [string, Session] {
    made += 1;
    const id = `session-${made}`;
    const session: Session = {
      listener: undefined,
      answer: undefined,
      upstream: new Upstream(options.script ?? {}, (message) => {
        if (session.answer) session.answer(message);
        else session.listener?.enqueue(frame(message));
      }),
    };
    sessions.set(id, session);
    return [id, session];
  }

  function listen(session: Session, first?: Uint8Array): Response {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        session.listener = controller;
        controller.enqueue(first ?? encoder.encode(": here\n\n"));
      },
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  }

  function broken(fault: Fault, message: Message): Response | Promise<Response> {
    const stream = (
      start: (controller: ReadableStreamDefaultController<Uint8Array>) => void | Promise<void>,
    ) =>
      new Response(new ReadableStream<Uint8Array>({ start }), {
        headers: { "content-type": "text/event-stream" },
      });
    switch (fault.kind) {
      case "status":
        return new Response(fault.body, { status: fault.status });
      case "redirect":
        return new Response(null, { status: 307, headers: { location: fault.to } });
      case "flood":
        return flood(fault.as);
      case "broken":
        return stream(async (controller) => {
          controller.enqueue(encoder.encode(fault.priming ? "id: e1\ndata:\n\n" : ": here\n\n"));
          await Bun.sleep(1);
          controller.error(new Error("broken on purpose"));
        });
      case "ended":
        return stream((controller) => {
          controller.enqueue(encoder.encode(": here\n\n"));
          controller.close();
        });
      case "empty":
        return new Response(null, { status: 202 });
      case "other":
        return Response.json({ jsonrpc: "2.0", id: 4711, result: {} });
      case "garbage":
        return stream((controller) => {
          controller.enqueue(
            encoder.encode(`data: {"jsonrpc":"2.0","id":${message.id},"result":"none"}\n\n`),
          );
          controller.close();
        });
      case "lingers": {
        const result = { content: [{ type: "text", text: "here" }] };
        const body = new ReadableStream<Uint8Array>({
          start: (controller) => controller.enqueue(frame({ jsonrpc: "2.0", id: message.id, result })),
          cancel: fault.left,
        });
        return new Response(body, { headers: { "content-type": "text/event-stream" } });
      }
      case "hang":
        return new Promise<Response>(() => {});
    }
  }

  function flood(as: "json" | "stream"): Response {
    const piece = new Uint8Array(65_536).fill(0x61);
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(encoder.encode(as === "json" ? '{"jsonrpc":"' : "data: ")),
      pull(controller) {
        if (flooded >= FLOOD_BYTES) return controller.close();
        flooded += piece.length;
        controller.enqueue(piece);
      },
    });
    const type = as === "json" ? "application/json" : "text/event-stream";
    return new Response(body, { headers: { "content-type": type } });
  }

  async function post(request: Request): Promise<Response> {
    const message = (await request.json()) as Message;
    heard.push(message.method ?? "answer");
    const fault = options.fault?.(message, request);
    if (fault) return broken(fault, message);
    const named = request.headers.get("mcp-session-id");
    let session = named === null ? undefined : sessions.get(named);
    let id = named ?? "";
    if (message.method === "initialize") [id, session] = openSession();
    if (!session) return new Response("no such session", { status: 404 });
    const said: object[] = [];
    session.answer = (answer) => said.push(answer);
    session.upstream.take(message);
    session.answer = undefined;
    if (message.id === undefined || message.method === undefined) return new Response(null, { status: 202 });
    const own = said.at(-1);
    if (own === undefined) return new Promise<Response>(() => {});
    const answered = { "mcp-session-id": id };
    if (options.answers === "json") return Response.json(own, { headers: answered });
    const body = new Blob(said.map((each) => frame(each)));
    return new Response(body, { headers: { ...answered, "content-type": "text/event-stream" } });
  }

  async function postToStream(request: Request, id: string): Promise<Response> {
    const message = (await request.json()) as Message;
    heard.push(message.method ?? "answer");
    const fault = options.fault?.(message, request);
    if (fault) return broken(fault, message);
    const session = sessions.get(id);
    if (!session) return new Response("no such session", { status: 404 });
    session.upstream.take(message);
    return new Response(null, { status: 202 });
  }

  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: options.port ?? 0,
    idleTimeout: 0,
    development: false, // in development mode, an intentionally broken stream is printed as an error
    error: (error) => new Response(String(error), { status: 500 }),
    fetch(request) {
      const url = new URL(request.url);
      headers = Object.fromEntries(request.headers);
      if (url.pathname === "/mcp" && request.method === "POST") return post(request);
      if (url.pathname === "/message") return postToStream(request, url.searchParams.get("session") ?? "");
      heard.push(request.method);
      if (url.pathname === "/sse") {
        const [id, session] = openSession();
        return listen(session, encoder.encode(`event: endpoint\ndata: /message?session=${id}\n\n`));
      }
      const named = request.headers.get("mcp-session-id") ?? "";
      const session = sessions.get(named);
      if (!session) return new Response("no such session", { status: 404 });
      if (request.method === "GET") {
        const lastEvent = request.headers.get("last-event-id");
        return lastEvent === null ? listen(session) : new Response("nothing is kept", { status: 400 });
      }
      sessions.delete(named);
      return new Response(null, { status: 204 });
    },
  });

  return {
    url: `http://127.0.0.1:${server.port}/mcp`,
    sseUrl: `http://127.0.0.1:${server.port}/sse`,
    port: server.port ?? 0,
    heard,
    lastHeaders: () => headers,
    flooded: () => flooded,
    forget: () => sessions.clear(),
    hangUp() {
      for (const session of sessions.values()) session.listener?.close();
    },
    close: () => server.stop(true),
  };
}
