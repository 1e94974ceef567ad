/** Connectors that are added, changed and removed on one node, and used on another. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { documentOf, startApi } from "../connectors/openapi/api.ts";
import { addConnector } from "../mcp/support.ts";
import type { TestGateway } from "../support/gateway.ts";
import { startNodes, type TestNodes } from "../support/nodes.ts";
import { missingPostgres } from "../support/postgres/database.ts";
import { type ScriptedMcp, startScriptedMcp, text } from "../support/scripted-mcp.ts";
import { until } from "../support/until.ts";
import { ledger } from "../tasks/support.ts";

describe.skipIf(missingPostgres !== undefined)("a connector, over two nodes", () => {
  let started: TestNodes;
  let a: TestGateway;
  let b: TestGateway;
  let upstream: ScriptedMcp;

  beforeAll(async () => {
    started = await startNodes(2, { yaml: "limits: { requests_per_minute: 1000000 }\n" });
    const [first, second] = started.nodes;
    if (!first || !second) throw new Error("two nodes were started");
    [a, b] = [first, second];
  });
  afterAll(() => started.stop());
  beforeEach(() => {
    upstream = startScriptedMcp(["echo"]);
  });
  afterEach(async () => {
    for (const { name } of (await a.call("GET", "/v1/connectors")).body.data) {
      await a.call("DELETE", `/v1/connectors/${name}`);
    }
    await upstream.close();
  });

  const call = (node: TestGateway, tool: string, input: object = { n: 1 }) =>
    node.call("POST", `/v1/tools/${tool}/call`, { body: { arguments: input } });
  const shown = async (node: TestGateway, connector: string) =>
    (await node.call("GET", "/v1/connectors")).body.data.find(
      ({ name }: { name: string }) => name === connector,
    );
  const tools = async (node: TestGateway, connector: string): Promise<string[]> =>
    (await shown(node, connector))?.tools ?? [];
  const remove = async (node: TestGateway, name: string) =>
    (await node.call("DELETE", `/v1/connectors/${name}`)).status;

  test("is used on the other node, and unknown there once it is removed", async () => {
    await addConnector(a, "up", upstream.url);
    await until(async () => (await tools(b, "up")).length === 1);
    expect((await call(b, "up.echo")).body).toMatchObject({
      content: [{ type: "text", text: 'echo {"n":1}' }],
    });
    expect(await remove(a, "up")).toBe(204);
    await until(async () => (await tools(b, "up")).length === 0);
    expect((await call(b, "up.echo")).body.code).toBe("unknown_tool");
    expect(upstream.calls).toHaveLength(1);
  });

  test("is removed, refreshed and replaced on the other node at once", async () => {
    await addConnector(a, "up", upstream.url);
    expect((await b.call("POST", "/v1/connectors/up/refresh")).status).toBe(200);
    expect(await remove(b, "up")).toBe(204);
    await addConnector(a, "up", upstream.url);
    const body = { name: "up", kind: "mcp", transport: { type: "http", url: upstream.url } };
    expect((await b.call("POST", "/v1/connectors", { body })).status).toBe(409);
    expect(await remove(b, "up")).toBe(204);
    expect([404, 404]).toEqual([await remove(a, "up"), await remove(b, "up")]);
  });

  describe("that a node has removed which died before it told the others", () => {
    const seen = async () =>
      (
        await started.database.query<{ time: string }>(
          "SELECT seen_at AS time FROM nodes WHERE id <> 'node_dead' ORDER BY id",
        )
      ).map(({ time }) => time);
    const removedInStore = () => started.database.query("DELETE FROM connectors WHERE name = 'up'");

    test("is not called once somebody has been told that it is not there", async () => {
      await addConnector(a, "up", upstream.url);
      await until(async () => (await tools(b, "up")).length === 1);
      await removedInStore();
      expect(await remove(b, "up")).toBe(404);
      expect((await call(b, "up.echo")).body.code).toBe("unknown_tool");
      expect(await remove(a, "up")).toBe(404);
      expect(upstream.calls).toHaveLength(0);
    });

    test("is not called once that node is given up", async () => {
      await addConnector(a, "up", upstream.url);
      await until(async () => (await tools(b, "up")).length === 1);
      const dead =
        "INSERT INTO nodes (id, version, since, seen_at, tasks) VALUES ('node_dead', '0', 0, 9e15, 0)";
      await started.database.query(dead);
      // Both have reported twice since, so they have seen it.
      for (let beats = 0; beats < 2; beats++) {
        const before = await seen();
        await until(async () => (await seen()).every((time, at) => time !== before[at]));
      }
      await removedInStore();
      await started.database.query("DELETE FROM nodes WHERE id = 'node_dead'");
      for (const node of [a, b]) await until(async () => (await tools(node, "up")).length === 0);
      expect((await call(b, "up.echo")).body.code).toBe("unknown_tool");
    });
  });

  test("that is removed ends its calls on the other node", async () => {
    upstream.answer(() => new Promise(() => {}));
    await addConnector(a, "up", upstream.url);
    await until(async () => (await tools(b, "up")).length === 1);
    const calling = call(b, "up.echo");
    await until(() => upstream.calls.length === 1);
    expect(await remove(a, "up")).toBe(204);
    expect((await calling).body).toMatchObject({ status: "failed" });
  });

  test("has the same tools on both nodes, whichever lists them", async () => {
    await addConnector(a, "up", upstream.url);
    await until(async () => (await tools(b, "up")).length === 1);
    upstream.list(["echo", { name: "more", description: "New.", inputSchema: { type: "object" } }]);
    expect((await b.call("POST", "/v1/connectors/up/refresh")).body.tools).toHaveLength(2);
    await until(async () => (await tools(a, "up")).length === 2);
    expect((await call(a, "up.more")).status).toBe(200);
    expect(await shown(a, "up")).toEqual(await shown(b, "up"));
  });

  test("is known after messages were lost", async () => {
    await addConnector(a, "old", upstream.url);
    await until(async () => (await tools(b, "old")).length === 1);
    await started.database.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'gatehouse' AND datname = current_database()",
    );
    await addConnector(a, "up", upstream.url);
    expect(await remove(a, "old")).toBe(204);
    await until(async () => (await tools(b, "up")).length === 1 && (await tools(b, "old")).length === 0);
    expect((await call(b, "up.echo")).status).toBe(200);
  });

  test("whose upstream notifies both nodes of changed tools has one entry about it", async () => {
    await using server = startNotifying();
    await addConnector(a, "noisy", server.url);
    await until(async () => (await tools(b, "noisy")).length === 1);
    for (const node of [a, b]) expect((await call(node, "noisy.poke")).status).toBe(200);
    server.change();
    await Promise.all([call(a, "noisy.poke"), call(b, "noisy.poke")]);
    await until(async () => (await tools(a, "noisy")).length === 2 && (await tools(b, "noisy")).length === 2);
    // A later change follows what both nodes have written.
    for (const node of [a, b])
      expect((await node.call("POST", "/v1/connectors/noisy/refresh")).status).toBe(200);
    const changes = (await ledger(a)).filter(
      ({ action, actor, detail }) =>
        action === "connector.refresh" &&
        actor === "system" &&
        detail?.connector === "noisy" &&
        detail.tools === 2,
    );
    expect(changes).toHaveLength(1);
  });

  test("sends its auth to the origin that was authorised first, from any node", async () => {
    const [first, second] = [startApi(), startApi()];
    let server = first.url;
    const serve = (port: number) =>
      Bun.serve({
        ...{ hostname: "127.0.0.1", port },
        fetch: () =>
          Response.json({ ...documentOf({ operationId: "getThings" }), servers: [{ url: server }] }),
      });
    let documents = serve(0);
    const port = documents.port ?? 0;
    await documents.stop(true);
    const auth = { type: "bearer", token: "t0ken-of-the-connector" };
    const spec = `http://127.0.0.1:${port}/openapi.json`;
    const body = { name: "shop", kind: "openapi", spec, auth };
    expect((await a.call("POST", "/v1/connectors", { body })).body.status).toBe("unreachable");
    await until(async () => (await shown(b, "shop"))?.status === "unreachable");
    documents = serve(port);
    expect((await a.call("POST", "/v1/connectors/shop/refresh")).body.status).toBe("ready");
    server = second.url;
    const refused = (await b.call("POST", "/v1/connectors/shop/refresh")).body;
    expect([refused.status, refused.error]).toEqual(["unreachable", expect.stringContaining(first.url)]);
    server = first.url;
    expect((await b.call("POST", "/v1/connectors/shop/refresh")).body.status).toBe("ready");
    for (const node of [a, b]) expect((await call(node, "shop.getThings", {})).status).toBe(200);
    expect(first.asked.map(({ headers }) => headers.authorization)).toEqual(
      Array(2).fill(`Bearer ${auth.token}`),
    );
    expect(second.asked).toEqual([]);
    await documents.stop(true);
    await first.close();
    await second.close();
  });
});

/** An upstream whose calls of `poke` notify the caller's session that the tools have changed. */
function startNotifying() {
  let names = ["poke"];
  const changed = { jsonrpc: "2.0", method: "notifications/tools/list_changed" };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      if (request.method !== "POST") return new Response(null, { status: 405 });
      const { id, method, params } = (await request.json()) as {
        id?: number;
        method: string;
        params?: { protocolVersion?: string };
      };
      if (id === undefined) return new Response(null, { status: 202 });
      const answer = (result: object) => ({ jsonrpc: "2.0", id, result });
      if (method === "tools/call") {
        const frames = [changed, answer(text("poked"))].map(
          (message) => `data: ${JSON.stringify(message)}\n\n`,
        );
        return new Response(frames.join(""), { headers: { "content-type": "text/event-stream" } });
      }
      if (method === "tools/list") {
        const tools = names.map((name) => ({ name, inputSchema: { type: "object" } }));
        return Response.json(answer({ tools }));
      }
      return Response.json(
        answer({
          protocolVersion: params?.protocolVersion,
          capabilities: { tools: { listChanged: true } },
          serverInfo: { name: "notifying", version: "1" },
        }),
      );
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}/mcp`,
    change() {
      names = ["poke", "more"];
    },
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}
