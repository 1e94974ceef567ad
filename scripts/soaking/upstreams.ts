/**
 * The upstreams of the killed server: a model, an MCP server and an HTTP API. They survive the kills and count their
 * calls.
 */
import { type FakeModel, startFakeModel } from "../../test/support/fake-model.ts";
import { type ScriptedMcp, startScriptedMcp, text } from "../../test/support/scripted-mcp.ts";
import { follow } from "./plan.ts";

/** Tools that may be called again without being asked to. `api.read` is a GET. */
const REPEATABLE = new Set(["look", "read"]);
const ID = { type: "object", properties: { id: { type: "string" } }, required: ["id"] };

/** The calls received with one id. */
export interface Receipt {
  readonly tool: string;
  readonly mayRepeat: boolean;
  count: number;
}

export interface Upstreams {
  readonly model: FakeModel;
  readonly mcp: ScriptedMcp;
  readonly api: { readonly url: string; readonly spec: object };
  /** Receipts by the id in the call's arguments. */
  readonly receipts: ReadonlyMap<string, Receipt>;
  close(): Promise<void>;
}

export function startUpstreams(random: () => number): Upstreams {
  const receipts = new Map<string, Receipt>();
  const receive = async (tool: string, id: string): Promise<void> => {
    const receipt = receipts.get(id) ?? { tool, mayRepeat: REPEATABLE.has(tool), count: 0 };
    receipts.set(id, receipt);
    receipt.count++;
    // Long enough to be in flight when the server dies.
    await Bun.sleep(random() * 80);
  };
  const model = startFakeModel({ record: false });
  scriptModels(model, random);
  const mcp = startScriptedMcp([
    { name: "send", inputSchema: ID },
    { name: "look", inputSchema: ID, annotations: { idempotentHint: true } },
  ]);
  mcp.answer(async ({ name, input }) => {
    await receive(name, String(input.id));
    return text(`${name} is done`);
  });
  const api = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    development: false,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      if (pathname === "/orders" && request.method === "POST") {
        const { id } = (await request.json()) as { id: string };
        await receive("order", id);
        return Response.json({ ordered: id });
      }
      const id = /^\/orders\/(.+)$/.exec(pathname)?.[1];
      if (id === undefined) return new Response(null, { status: 404 });
      await receive("read", decodeURIComponent(id));
      return Response.json({ state: "open" });
    },
  });
  const url = `http://127.0.0.1:${api.port}`;
  return {
    model,
    mcp,
    api: { url, spec: apiSpec(url) },
    receipts,
    async close() {
      await Promise.all([model.close(), mcp.close(), api.stop(true)]);
    },
  };
}

function scriptModels(model: FakeModel, random: () => number): void {
  model.script("steady", (request) => follow(request, random() * 100));
  model.script("flaky", (request) => {
    const chance = random();
    if (chance < 0.2) return { status: 429, headers: { "retry-after": "1" } };
    if (chance < 0.4) return { status: 503 };
    // Is cut off in the middle of the answer, so readers are told to discard what they have.
    if (chance < 0.6) return { chunks: ["half an ", "answer"], delayMs: 20, cutAfter: 2 };
    return follow(request, 0);
  });
  model.script("broken", () => ({ status: 500 }));
}

function apiSpec(url: string): object {
  const answer = { 200: { description: "Done." } };
  return {
    openapi: "3.0.3",
    info: { title: "Orders", version: "1" },
    servers: [{ url }],
    paths: {
      "/orders": {
        post: {
          operationId: "order",
          requestBody: { required: true, content: { "application/json": { schema: ID } } },
          responses: answer,
        },
      },
      "/orders/{id}": {
        get: {
          operationId: "read",
          parameters: [{ name: "id", in: "path", required: true, schema: { type: "string" } }],
          responses: answer,
        },
      },
    },
  };
}
