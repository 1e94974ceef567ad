/** Sessions of MCP whose requests arrive at any node. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Client as SdkClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import {
  addConnector,
  type Client,
  connect,
  hello,
  isMessage,
  openStream,
  post,
  postOpen,
  request,
  watch,
} from "../mcp/support.ts";
import type { TestGateway } from "../support/gateway.ts";
import { startNodes, type TestNodes } from "../support/nodes.ts";
import { missingPostgres } from "../support/postgres/database.ts";
import { type ScriptedMcp, startScriptedMcp, text } from "../support/scripted-mcp.ts";
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
    const usedAt = async () => {
      const [row] = await started.database.query("SELECT used_at, had_stream FROM mcp_sessions");
      return [Number(row?.used_at), row?.had_stream];
    };
    const [before] = await usedAt();
    await started.database.query("UPDATE mcp_sessions SET used_at = used_at - 60000");
    const stream = await client.listen();
    await node.stop();
    await stream.ended;
    // Its last use is written at the latest when its node stops.
    const [used, hadStream] = await usedAt();
    expect([Number(used) >= Number(before), hadStream]).toEqual([true, true]);
    expect((await at(b, client).post(request("tools/list"))).status).toBe(200);
    expect((await at(a, client).post(request("tools/list"))).status).toBe(200);
    await at(a, client).delete();
  });

  test("that has expired is not found by a node that did not serve it", async () => {
    const client = await connect(a);
    const age = (minutes: number, hadStream: boolean) =>
      started.database.query("UPDATE mcp_sessions SET used_at = used_at - $1, had_stream = $2", [
        minutes * 60_000,
        hadStream,
      ]);
    await age(6, true);
    expect((await at(b, client).post(request("ping"))).status).toBe(404);
    await age(22, false);
    expect((await at(b, client).post(request("ping"))).status).toBe(200);
    await client.end();
  });

  test("makes room in a full workspace: the one idle the longest ends, but none that a node may be using", async () => {
    const fill = (age: string) =>
      started.database.query(
        `INSERT INTO mcp_sessions (workspace_id, id_hash, actor, told_tools, used_at, had_stream)
         SELECT (SELECT id FROM workspaces WHERE name = 'default'), 'filled-' || at, 'token:other', '',
           extract(epoch FROM now())::bigint * 1000 - ${age}, FALSE FROM generate_series(1, 2000) AS at`,
      );
    const filled = async () =>
      (await started.database.query("SELECT id_hash FROM mcp_sessions WHERE id_hash LIKE 'filled-%'")).length;
    const empty = () => started.database.query("DELETE FROM mcp_sessions WHERE id_hash LIKE 'filled-%'");
    await fill("0");
    expect((await post(a, hello())).status).toBe(429);
    await empty();
    await fill("600000 - at");
    const client = await connect(a);
    expect(await filled()).toBe(1_999);
    const [kept] = await started.database.query("SELECT 1 FROM mcp_sessions WHERE id_hash = 'filled-2000'");
    expect(kept).toBeUndefined();
    await empty();
    await client.end();
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

  describe("with an upstream", () => {
    let upstream: ScriptedMcp;
    let client: Client;
    const calling = (which: string) => request("tools/call", { name: "up__slow", arguments: { which } });
    const opened = (node: TestGateway, body: unknown, signal?: AbortSignal) =>
      postOpen(node, body, {
        headers: { "mcp-session-id": client.id, "mcp-protocol-version": client.version },
        ...(signal && { signal }),
      });

    beforeAll(async () => {
      upstream = startScriptedMcp(["slow"]);
      await addConnector(a, "up", upstream.url);
      client = await connect(a);
      await until(async () => (await listed(b)).includes("up__slow"));
    });
    afterAll(async () => {
      await client.end();
      await upstream.close();
    });

    async function listed(node: TestGateway): Promise<string[]> {
      const { last } = await at(node, client).post(request("tools/list"));
      return last.result.tools.map(({ name }: { name: string }) => name);
    }

    test("a call on one node is cancelled on the other, by ids of any length", async () => {
      upstream.answer(() => new Promise(() => {}));
      for (const id of [77_001, "7".repeat(5_000)]) {
        const before = upstream.calls.length;
        const stream = watch(await opened(a, { ...calling("cancelled"), id }));
        await until(() => upstream.calls.length === before + 1);
        const params = { requestId: id };
        const told = await at(b, client).post({ jsonrpc: "2.0", method: "notifications/cancelled", params });
        expect(told.status).toBe(202);
        await stream.ended;
        expect(stream.text()).toContain("The request was cancelled.");
      }
    });

    test("a call is not cancelled by another session's message", async () => {
      const answer = Promise.withResolvers<object>();
      upstream.answer(() => answer.promise);
      const before = upstream.calls.length;
      const stream = watch(await opened(a, { ...calling("kept"), id: 77_002 }));
      await until(() => upstream.calls.length === before + 1);
      const other = await connect(b);
      await other.tell("notifications/cancelled", { requestId: 77_002 });
      await other.end();
      answer.resolve(text("the answer"));
      await stream.saw(({ data }) => data.includes("the answer"));
      upstream.answer(() => text("done"));
    });

    test("a call's lost stream is resumed on the other node, before and after its answer", async () => {
      const headersOf = (last: string) =>
        new Headers({
          ...{ authorization: `Bearer ${b.admin}`, accept: "text/event-stream", "last-event-id": last },
          ...{ "mcp-session-id": client.id, "mcp-protocol-version": client.version },
        });
      const resumeOn = async (last: string) => {
        let resumed = await openStream(b, "/mcp", headersOf(last));
        // The server notices a little later than the client that the connection is gone.
        while (resumed.status === 409) resumed = await openStream(b, "/mcp", headersOf(last));
        return resumed;
      };
      const answer = Promise.withResolvers<object>();
      upstream.answer(() => answer.promise);
      const before = upstream.calls.length;
      const abort = new AbortController();
      const lost = watch(await opened(a, calling("lost"), abort.signal), abort);
      const { id } = await lost.saw((event) => event.id !== "");
      await until(() => upstream.calls.length === before + 1);
      lost.leave();
      await lost.ended;
      const early = await resumeOn(id);
      expect(early.status).toBe(200);
      answer.resolve(text("the lost answer"));
      const found = await early.saw(({ data }) => data.includes("the lost answer"));
      early.leave();
      await early.ended;
      const late = await resumeOn(id);
      await late.saw(({ data }) => data.includes("the lost answer"));
      late.leave();
      await late.ended;
      expect((await resumeOn(found.id)).status).toBe(405);
      expect((await resumeOn(`${"0".repeat(8)}.1`)).status).toBe(400);
      const replays = "SELECT 1 FROM mcp_replays";
      await until(async () => (await started.database.query(replays)).length === 0);
      upstream.answer(() => text("done"));
    });

    test("the stream on one node reports what was changed on the other, and moves", async () => {
      const changed = isMessage("notifications/tools/list_changed");
      const first = await client.listen();
      upstream.list(["slow", "more"]);
      expect((await b.call("POST", "/v1/connectors/up/refresh")).status).toBe(200);
      await first.saw(changed);
      // A client that opens its stream elsewhere has left the first one, even if nobody has noticed.
      const headers = new Headers({
        ...{ authorization: `Bearer ${b.admin}`, accept: "text/event-stream" },
        ...{ "mcp-session-id": client.id, "mcp-protocol-version": client.version },
      });
      const second = await openStream(b, "/mcp", headers);
      await first.ended;
      upstream.list(["slow"]);
      expect((await a.call("POST", "/v1/connectors/up/refresh")).status).toBe(200);
      await second.saw(changed);
      expect(first.events.filter(changed)).toHaveLength(1);
      second.leave();
      await second.ended;
    });
  });

  test("serves the SDK's client, each of whose requests arrives at another node", async () => {
    const upstream = startScriptedMcp(["slow"]);
    await addConnector(b, "sdk", upstream.url);
    let requests = 0;
    const transport = new StreamableHTTPClientTransport(new URL(`${a.url}/mcp`), {
      requestInit: { headers: { authorization: `Bearer ${a.admin}` } },
      fetch: (url, init) => {
        requests += 1;
        return fetch(new URL(new URL(url).pathname, requests % 2 === 1 ? a.url : b.url), init);
      },
    });
    const client = new SdkClient({ name: "tests", version: "1" });
    let changes = 0;
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
      changes += 1;
    });
    await client.connect(transport as Transport);
    for (let round = 0; round < 4; round++) {
      const { tools } = await client.listTools();
      expect(tools.map(({ name }) => name)).toContain("sdk__slow");
      const answer = await client.callTool({ name: "sdk__slow", arguments: { round } });
      expect(answer.isError ?? false).toBe(false);
      await client.ping();
    }
    expect(upstream.calls.map(({ input }) => input.round)).toEqual([0, 1, 2, 3]);
    upstream.answer(() => new Promise(() => {}));
    const abort = new AbortController();
    const cancelled = client
      .callTool({ name: "sdk__slow", arguments: {} }, undefined, { signal: abort.signal })
      .catch(() => "cancelled");
    await until(() => upstream.calls.length === 5);
    abort.abort();
    expect(await cancelled).toBe("cancelled");
    await until(() => upstream.heard.includes("notifications/cancelled"));
    upstream.list([]);
    await a.call("POST", "/v1/connectors/sdk/refresh");
    await until(() => changes > 0);
    await transport.terminateSession();
    await client.close();
    for (const node of [a, b]) await until(async () => (await sessionsOn(node)) === 0);
    await a.call("DELETE", "/v1/connectors/sdk");
    await upstream.close();
  });

  async function sessionsOn(node: TestGateway): Promise<number> {
    const { body } = await node.call("GET", "/metrics");
    return Number(/^gatehouse_mcp_sessions (\d+)$/m.exec(body)?.[1]);
  }
});
