/** Sessions of MCP whose requests arrive at any node. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Client, connect, hello, openStream, post, postOpen, request } from "../mcp/support.ts";
import type { TestGateway } from "../support/gateway.ts";
import { startNodes, type TestNodes } from "../support/nodes.ts";
import { missingPostgres } from "../support/postgres/database.ts";
import { until } from "../support/until.ts";

const YAML = "limits: { requests_per_minute: 1000000 }\n";

describe.skipIf(missingPostgres !== undefined)("a session of MCP, over two nodes", () => {
  let started: TestNodes;
  let a: TestGateway;
  let b: TestGateway;

  beforeAll(async () => {
    started = await startNodes(2, { yaml: YAML });
    const [first, second] = started.nodes;
    if (!first || !second) throw new Error("two nodes were started");
    [a, b] = [first, second];
  });
  afterAll(() => started.stop());

  /** The same session, by way of another node. */
  const at = (node: TestGateway, { id, version }: Client, token = node.admin) => {
    const headers = { "mcp-session-id": id, "mcp-protocol-version": version };
    return {
      post: (body: unknown) => post(node, body, { token, headers }),
      delete: () =>
        fetch(`${node.url}/mcp`, {
          method: "DELETE",
          headers: { ...headers, authorization: `Bearer ${token}` },
        }),
    };
  };

  const rows = async () => (await started.database.query("SELECT 1 FROM mcp_sessions")).length;

  test("belongs to the token that opened it, on both nodes", async () => {
    const other = await a.token({ scopes: ["admin"] });
    const client = await connect(a);
    for (const node of [a, b]) {
      expect((await at(node, client, other).post(request("tools/list"))).status).toBe(404);
      expect((await at(node, client, other).delete()).status).toBe(404);
    }
    const stranger = { ...client, id: "0".repeat(client.id.length) };
    for (const node of [a, b]) expect((await at(node, stranger).post(request("ping"))).status).toBe(404);
    for (const node of [b, a]) expect((await at(node, client).post(request("ping"))).status).toBe(200);
    await client.end();
  });

  test("is opened on one node and used on the other, by plain answers and by streams", async () => {
    const client = await connect(a);
    const there = at(b, client);
    const list = await there.post(request("tools/list"));
    expect([list.status, list.headers.get("mcp-session-id")]).toEqual([200, client.id]);
    expect(list.last.result.tools.map(({ name }: { name: string }) => name)).toContain("time__now");
    const call = await there.post(request("tools/call", { name: "time__now", arguments: {} }));
    expect(call.last.result.isError).toBeUndefined();
    expect((await there.post(request("ping"))).last.result).toEqual({});
    await client.end();
  });

  test("ends on all nodes, wherever it is ended", async () => {
    const client = await connect(a);
    expect((await at(b, client).post(request("ping"))).status).toBe(200);
    const before = await rows();
    expect((await at(b, client).delete()).status).toBe(200);
    expect(await rows()).toBe(before - 1);
    expect((await at(b, client).post(request("ping"))).status).toBe(404);
    await until(async () => (await at(a, client).post(request("ping"))).status === 404);
    expect((await at(a, client).delete()).status).toBe(404);
  });

  test("goes on when the node that opened it has stopped", async () => {
    const node = await started.add();
    const client = await connect(node);
    await node.stop();
    expect((await at(b, client).post(request("tools/list"))).status).toBe(200);
    expect((await at(a, client).post(request("tools/list"))).status).toBe(200);
    await at(a, client).delete();
  });

  test("of the older transport stays where its stream is", async () => {
    const headers = new Headers({ authorization: `Bearer ${a.admin}` });
    const older = await openStream(a, "/mcp/sse", headers);
    const { data } = await older.saw(({ event }) => event === "endpoint");
    const path = new URL(data).pathname + new URL(data).search;
    expect((await post(b, hello("2024-11-05"), { path })).status).toBe(404);
    const taken = await postOpen(a, hello("2024-11-05"), { path });
    expect([taken.status, await taken.text()]).toEqual([202, "Accepted"]);
    await older.saw((event) => event.data.includes("protocolVersion"));
    older.leave();
  });
});
