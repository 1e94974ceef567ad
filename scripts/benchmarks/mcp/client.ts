/** Opens MCP sessions over Streamable HTTP, and prepares the requests that the load generator sends in them. */
import Type from "typebox";
import { validator } from "../../../src/base/schema.ts";
import { requestText } from "../load/request.ts";

const PATH = "/mcp";
const PROTOCOL = "2025-11-25";
/** What the specification requires a client to accept. */
const ACCEPT = "application/json, text/event-stream";
/** Less than a server's backlog of unaccepted connections. */
const AT_ONCE = 50;
/** JSON-RPC ids that the requests of one connection use in turn. */
const IDS = 4;

export interface McpServer {
  readonly port: number;
  /** The bare server gets a token too, but ignores it. */
  readonly token: string;
}

export interface Method {
  readonly method: string;
  readonly params: object;
}

/**
 * Opens sessions, each of which has sent its `initialized` notification.
 * @returns their ids
 */
export async function openSessions(server: McpServer, count: number): Promise<string[]> {
  return inGroups(Array.from({ length: count }), () => openSession(server));
}

/** Ends sessions with DELETE, as a client does when it is done. */
export async function endSessions(server: McpServer, sessions: readonly string[]): Promise<void> {
  await inGroups(sessions, (session) => send(server, "DELETE", 200, session));
}

/** The same call in each session, as a list for each of the load generator's connections. */
export function callsIn(
  { token }: McpServer,
  sessions: readonly string[],
  { method, params }: Method,
): string[][] {
  return sessions.map((session) =>
    Array.from({ length: IDS }, (_, id) =>
      requestText("POST", PATH, {
        token,
        accept: ACCEPT,
        headers: sessionHeaders(session),
        body: { jsonrpc: "2.0", id: id + 1, method, params },
      }),
    ),
  );
}

/** The requests that open each session's stream for the server's own messages. */
export function streamsOf({ token }: McpServer, sessions: readonly string[]): string[] {
  return sessions.map((session) =>
    requestText("GET", PATH, { token, accept: "text/event-stream", headers: sessionHeaders(session) }),
  );
}

const listed = validator(
  Type.Object({
    result: Type.Object({
      tools: Type.Array(
        Type.Object({ name: Type.String(), inputSchema: Type.Object({ type: Type.Literal("object") }) }),
      ),
    }),
  }),
);

/** A server's tools, as it lists them. */
export async function toolsOf(server: McpServer) {
  const [session = ""] = await openSessions(server, 1);
  const body = { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} };
  const { text } = await send(server, "POST", 200, session, body);
  await endSessions(server, [session]);
  // The data of the last event is the answer.
  return listed.parse(JSON.parse(answerIn(text))).result.tools;
}

async function openSession(server: McpServer): Promise<string> {
  const params = {
    protocolVersion: PROTOCOL,
    capabilities: {},
    clientInfo: { name: "gatehouse-bench", version: "1.0.0" },
  };
  const hello = { jsonrpc: "2.0", id: 0, method: "initialize", params };
  const { headers } = await send(server, "POST", 200, null, hello);
  const session = headers.get("mcp-session-id");
  if (session === null) throw new Error("initialize was answered without a session");
  await send(server, "POST", 202, session, { jsonrpc: "2.0", method: "notifications/initialized" });
  return session;
}

/** @throws Error if the answer has another status */
async function send(
  { port, token }: McpServer,
  method: "POST" | "DELETE",
  status: number,
  session: string | null,
  body?: object,
): Promise<{ readonly headers: Headers; readonly text: string }> {
  const response = await fetch(`http://127.0.0.1:${port}${PATH}`, {
    method,
    headers: {
      Authorization: `Bearer ${token}`,
      Accept: ACCEPT,
      ...(session === null ? {} : { "Mcp-Session-Id": session, "MCP-Protocol-Version": PROTOCOL }),
      ...(body === undefined ? {} : { "Content-Type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (response.status !== status) throw new Error(`${method} ${PATH}: ${response.status} ${text}`);
  return { headers: response.headers, text };
}

function sessionHeaders(session: string): string[] {
  return [`Mcp-Session-Id: ${session}`, `MCP-Protocol-Version: ${PROTOCOL}`];
}

async function inGroups<In, Out>(items: readonly In[], work: (item: In) => Promise<Out>): Promise<Out[]> {
  const done: Out[] = [];
  while (done.length < items.length) {
    done.push(...(await Promise.all(items.slice(done.length, done.length + AT_ONCE).map(work))));
  }
  return done;
}

/** The JSON of an answer: the whole body, or the last event of a stream. */
function answerIn(text: string): string {
  return text.startsWith("{") ? text : text.slice(text.lastIndexOf("data: ") + "data: ".length);
}
