/**
 * The cost of the same MCP calls without anything around them: the SDK's low-level server and its own transport, with
 * sessions, set up according to its documentation. No authentication, limits, ledger or disk, and nothing is kept for
 * broken streams.
 */
import { randomBytes } from "node:crypto";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import type { Static } from "typebox";
import { answerLines } from "../processes/lines.ts";
import { bareMcpConfig } from "./config.ts";

/** As long in hexadecimal as the ids of Gatehouse's sessions, so that requests have the same length. */
const SESSION_ID_BYTES = 29;
/** Bun sends the headers with the first byte of the body, so without this a quiet stream would not count as open. */
const OPENED = new TextEncoder().encode(": open\n\n");

type Tools = Static<typeof bareMcpConfig.schema>["tools"];

class Sessions {
  readonly #tools: Tools;
  readonly #byId = new Map<string, WebStandardStreamableHTTPServerTransport>();

  constructor(tools: Tools) {
    this.#tools = tools;
  }

  async handle(request: Request): Promise<Response> {
    const id = request.headers.get("mcp-session-id");
    const transport = id === null ? await this.#open() : this.#byId.get(id);
    if (transport === undefined) return new Response("there is no such session", { status: 404 });
    const response = await transport.handleRequest(request);
    return request.method === "GET" ? opened(response) : response;
  }

  async #open(): Promise<WebStandardStreamableHTTPServerTransport> {
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => randomBytes(SESSION_ID_BYTES).toString("hex"),
      onsessioninitialized: (id) => void this.#byId.set(id, transport),
      onsessionclosed: (id) => void this.#byId.delete(id),
    });
    const server = new Server({ name: "bare", version: "1.0.0" }, { capabilities: { tools: {} } });
    server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: this.#tools }));
    server.setRequestHandler(CallToolRequestSchema, () => {
      const answer = { now: new Date().toISOString() };
      return { content: [{ type: "text", text: JSON.stringify(answer) }], structuredContent: answer };
    });
    await server.connect(transport);
    return transport;
  }
}

function opened({ body, status, headers }: Response): Response {
  async function* frames(): AsyncGenerator<Uint8Array> {
    yield OPENED;
    if (body !== null) yield* body;
  }
  return new Response(frames(), { status, headers });
}

await answerLines(async (message) => {
  const sessions = new Sessions(bareMcpConfig.parse(message).tools);
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    development: false,
    fetch: (request) => sessions.handle(request),
  });
  return { port: server.port };
});
