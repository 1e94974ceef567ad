/** The SDK's own clients, as users run them. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { type ScriptedMcp, startScriptedMcp } from "../support/scripted-mcp.ts";
import { write } from "../support/vault.ts";
import { addConnector, post, request } from "./support.ts";

let gateway: TestGateway;
let upstream: ScriptedMcp;
beforeAll(async () => {
  gateway = await startGateway();
  upstream = startScriptedMcp(["echo"]);
  await addConnector(gateway, "up", upstream.url);
});
afterAll(async () => {
  await gateway.stop();
  await upstream.close();
});

const headers = () => ({ authorization: `Bearer ${gateway.admin}` });

/** The SDK's classes do not declare their optional fields as exactly optional. */
type Loose = StreamableHTTPClientTransport | SSEClientTransport;
const asTransport = (transport: Loose) => transport as Transport;

interface Way {
  readonly transport: Loose;
  /** Resolves when the stream for the server's own messages is open. */
  readonly listens: Promise<void>;
}

const WAYS: readonly [string, () => Way][] = [
  ["Streamable HTTP at /mcp", () => streamable("/mcp")],
  ["Streamable HTTP at /mcp/sse", () => streamable("/mcp/sse")],
  ["HTTP+SSE at /mcp/sse", () => ({ transport: older(gateway.admin), listens: Promise.resolve() })],
];

function streamable(path: string): Way {
  const listening = Promise.withResolvers<void>();
  const transport = new StreamableHTTPClientTransport(new URL(gateway.url + path), {
    requestInit: { headers: headers() },
    async fetch(url, init) {
      const response = await fetch(url, init);
      if (init?.method === "GET" && response.ok) listening.resolve();
      return response;
    },
  });
  return { transport, listens: listening.promise };
}

function older(token: string): SSEClientTransport {
  const sent = { authorization: `Bearer ${token}` };
  return new SSEClientTransport(new URL(`${gateway.url}/mcp/sse`), {
    requestInit: { headers: sent },
    eventSourceInit: { fetch: (url, init) => fetch(url, { ...init, headers: { ...init.headers, ...sent } }) },
  });
}

describe.each(WAYS)("%s", (_, open) => {
  test("lists, calls and reads", async () => {
    const client = new Client({ name: "tests", version: "1" });
    await client.connect(asTransport(open().transport));
    expect(client.getServerVersion()).toMatchObject({ name: "gatehouse" });
    await client.ping();
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      "time__now",
      "up__echo",
      "vault__read",
      "vault__search",
      "vault__write",
    ]);
    expect(tools.find(({ name }) => name === "up__echo")?.title).toBe("up.echo");
    const answer = await client.callTool({ name: "up__echo", arguments: { text: "hi" } });
    expect(answer.content).toEqual([{ type: "text", text: 'echo {"text":"hi"}' }]);
    const { id } = await write(gateway, { title: "Returns", text: "Refunds are paid." });
    const listed = await client.listResources();
    expect(listed.resources.map(({ uri }) => uri)).toContain(`vault://${id}`);
    const { contents } = await client.readResource({ uri: `vault://${id}` });
    expect(contents).toEqual([{ uri: `vault://${id}`, mimeType: "text/plain", text: "Refunds are paid." }]);
    await client.close();
  });

  test("is notified that tools have changed", async () => {
    const client = new Client({ name: "tests", version: "1" });
    const told = Promise.withResolvers<void>();
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => told.resolve());
    const { transport, listens } = open();
    await client.connect(asTransport(transport));
    await listens;
    const more = startScriptedMcp(["tool"]);
    await addConnector(gateway, "more", more.url);
    await told.promise;
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain("more__tool");
    await client.close();
    await gateway.call("DELETE", "/v1/connectors/more");
    await more.close();
  });

  test("is refused with the code what the token may not do", async () => {
    const client = new Client({ name: "tests", version: "1" });
    await client.connect(asTransport(open().transport));
    const call = client.callTool({ name: "up__none", arguments: {} });
    await expect(call).rejects.toMatchObject({ code: -32_602, data: { code: "unknown_tool" } });
    await client.close();
  });
});

describe("the older transport", () => {
  test("refuses a client without a valid token", async () => {
    const client = new Client({ name: "tests", version: "1" });
    await expect(client.connect(asTransport(older("gth_none")))).rejects.toThrow("401");
  });

  test("names an endpoint that another token cannot use, and accepts only messages", async () => {
    const abort = new AbortController();
    const response = await fetch(`${gateway.url}/mcp/sse`, { headers: headers(), signal: abort.signal });
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    const reader = response.body?.getReader();
    let text = "";
    while (!text.includes("data: ")) text += new TextDecoder().decode((await reader?.read())?.value);
    const [, endpoint = ""] = /event: endpoint\ndata: (\S+)\n/.exec(text) ?? [];
    expect(endpoint).toStartWith(`${gateway.url}/mcp/sse?sessionId=`);
    const path = endpoint.slice(gateway.url.length);
    const token = await gateway.token({ scopes: ["admin"] });
    expect((await post(gateway, request("ping"), { path, token })).status).toBe(404);
    expect((await post(gateway, { no: "message" }, { path })).status).toBe(400);
    expect((await post(gateway, [request("ping")], { path })).status).toBe(400);
    expect((await gateway.call("POST", path, { body: request("ping") })).status).toBe(202);
    abort.abort();
  });
});
