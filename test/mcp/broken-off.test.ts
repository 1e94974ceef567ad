/** Calls that are broken off: who ends them, what continues, and what stays open. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client as SdkClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { FakeClock } from "../support/clock.ts";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { type ScriptedMcp, startScriptedMcp, text } from "../support/scripted-mcp.ts";
import { held, ledger, unsettled, until, yamlOf } from "../tasks/support.ts";
import { addConnector, type Client, connect, hello, request, type Stream, watch } from "./support.ts";

const MINUTE = 60_000;

interface Asked {
  readonly stream: Stream;
  /** Tells the server that the answer is no longer wanted. */
  cancel(): Promise<unknown>;
}

/** A client of the older transport, with its single stream. */
interface Older {
  readonly stream: Stream;
  send(body: unknown): Promise<Response>;
}

async function connectOlder(gateway: TestGateway, token: string): Promise<Older> {
  const abort = new AbortController();
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const stream = watch(await fetch(`${gateway.url}/mcp/sse`, { headers, signal: abort.signal }), abort);
  const { data: endpoint } = await stream.saw(({ event }) => event === "endpoint");
  const send = (body: unknown) => fetch(endpoint, { method: "POST", headers, body: JSON.stringify(body) });
  await send(hello("2024-11-05"));
  await stream.saw(({ data }) => data.includes("serverInfo"));
  return { stream, send };
}

const cancelling = (requestId: number) => ({
  jsonrpc: "2.0",
  method: "notifications/cancelled",
  params: { requestId },
});

describe("an agent's call in flight", () => {
  const asked = () => request("tools/call", { name: "agents__plain", arguments: { prompt: "hi" } });
  let upstream: FakeModel;
  let gateway: TestGateway;
  let dataDir: string;
  let yaml: string;
  beforeEach(async () => {
    upstream = startFakeModel();
    yaml = yamlOf(upstream.url, { tiers: { 1: ["a"] } });
    dataDir = mkdtempSync(join(tmpdir(), "gatehouse-broken-off-"));
    gateway = await startGateway({ yaml, dataDir });
    await gateway.agent("plain");
  });
  afterEach(async () => {
    await gateway.stop();
    await upstream.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const WAYS: readonly [string, (token: string) => Promise<Asked>][] = [
    [
      "Streamable HTTP",
      async (token) => {
        const client = await connect(gateway, { token });
        const body = asked();
        const abort = new AbortController();
        const stream = watch(await client.open(body, { signal: abort.signal }), abort);
        return { stream, cancel: () => client.post(cancelling(body.id)) };
      },
    ],
    [
      "HTTP+SSE",
      async (token) => {
        const { stream, send } = await connectOlder(gateway, token);
        const body = asked();
        await send(body);
        return { stream, cancel: () => send(cancelling(body.id)) };
      },
    ],
  ];

  const task = async () => (await gateway.call("GET", "/v1/tasks?limit=1")).body.data[0];
  const cancels = async () => (await ledger(gateway)).filter(({ action }) => action === "task.cancel");
  const issue = async (): Promise<{ id: string; secret: string }> =>
    (await gateway.call("POST", "/v1/tokens", { body: { name: "t", agent: "plain" } })).body;

  /** Checks that the only task succeeded, that nobody cancelled it, and that the ledger has no open intent. */
  async function wentOn(output: string): Promise<void> {
    await until(async () => !["queued", "running"].includes((await task()).status));
    expect(await task()).toMatchObject({ status: "succeeded", output });
    expect((await gateway.call("GET", "/v1/tasks")).body.data).toHaveLength(1);
    expect(await cancels()).toEqual([]);
    await until(async () => unsettled(await ledger(gateway)).length === 0);
  }

  describe.each(WAYS)("by %s", (_, ask) => {
    test("has its task cancelled if the client cancels it", async () => {
      const hold = held();
      upstream.script("a", hold.script);
      const { id, secret } = await issue();
      const { stream, cancel } = await ask(secret);
      await hold.asked;
      await cancel();
      await until(async () => (await task()).status === "cancelled");
      await until(async () => (await cancels()).length === 1);
      const { id: taskId } = await task();
      expect(await cancels()).toMatchObject([{ actor: `token:${id}`, task: taskId, outcome: "succeeded" }]);
      expect(stream.text()).not.toContain('"structuredContent"');
      hold.open();
      stream.leave();
    });

    test("has its task continue after a restart", async () => {
      const hold = held();
      upstream.script("a", hold.script);
      const { stream } = await ask((await issue()).secret);
      await hold.asked;
      await gateway.stop();
      await stream.ended;
      upstream.script("a", { chunks: ["Done at last."] });
      gateway = await startGateway({ yaml, dataDir });
      await wentOn("Done at last.");
      hold.open();
    });

    test("has its task continue if the token is revoked", async () => {
      const hold = held({ chunks: ["Done anyway."] });
      upstream.script("a", hold.script);
      const { id, secret } = await issue();
      const { stream } = await ask(secret);
      await hold.asked;
      expect((await gateway.call("DELETE", `/v1/tokens/${id}`)).status).toBe(204);
      await stream.ended;
      hold.open();
      await wentOn("Done anyway.");
    });

    test("has its task continue if the client drops its stream", async () => {
      const hold = held({ chunks: ["Done unheard."] });
      upstream.script("a", hold.script);
      const { stream } = await ask((await issue()).secret);
      await hold.asked;
      stream.leave();
      await stream.ended;
      hold.open();
      await wentOn("Done unheard.");
    });
  });

  test("has its task continue if the older transport's session ends with its stream", async () => {
    const hold = held({ chunks: ["Done unheard."] });
    upstream.script("a", hold.script);
    const { stream, send } = await connectOlder(gateway, (await issue()).secret);
    await send(asked());
    await hold.asked;
    stream.leave();
    await until(async () =>
      (await gateway.call("GET", "/metrics")).body.includes("gatehouse_mcp_sessions 0\n"),
    );
    hold.open();
    await wentOn("Done unheard.");
  });
});

describe("an upstream's call in flight", () => {
  let gateway: TestGateway;
  let upstream: ScriptedMcp;
  let clock: FakeClock;
  beforeEach(async () => {
    clock = new FakeClock();
    gateway = await startGateway({ clock, yaml: "limits: { requests_per_minute: 1000000 }\n" });
    upstream = startScriptedMcp(["slow"]);
    await addConnector(gateway, "up", upstream.url);
  });
  afterEach(async () => {
    // A cancelled call is recorded a moment after its client was answered.
    await until(async () => unsettled(await ledger(gateway)).length === 0);
    await gateway.stop();
    await upstream.close();
  });

  const slow = (which = "") => request("tools/call", { name: "up__slow", arguments: { which } });
  const sessions = async () => {
    const { body } = await gateway.call("GET", "/metrics");
    return Number(/^gatehouse_mcp_sessions (\d+)$/m.exec(body)?.[1]);
  };

  test("leaves nothing open if the SDK's client cancels it, and that client learns that nothing more follows", async () => {
    upstream.answer(() => new Promise(() => {}));
    const wire = watchedFetch();
    const transport = new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`), {
      requestInit: { headers: { authorization: `Bearer ${gateway.admin}` } },
      fetch: wire.fetch,
    });
    const client = new SdkClient({ name: "tests", version: "1" });
    // The SDK's classes do not declare their optional fields as exactly optional.
    await client.connect(transport as Transport);
    await until(() => wire.open("GET") === 1);
    const abort = new AbortController();
    const calls = [1, 2, 3, 4, 5].map((which) =>
      client.callTool({ name: "up__slow", arguments: { which } }, undefined, { signal: abort.signal }).then(
        () => "answered",
        () => "cancelled",
      ),
    );
    await until(() => upstream.calls.length === 5 && wire.open("POST") === 5);
    abort.abort();
    expect(await Promise.all(calls)).toEqual(Array(5).fill("cancelled"));
    await until(() => wire.open("POST") === 0);
    await until(() => upstream.heard.filter((method) => method === "notifications/cancelled").length === 5);
    // The SDK's client does not accept an error as an answer. It asks once more for each stream, learns that it is
    // over, and stops.
    await until(() => wire.statuses.length === 6);
    for (let pings = 0; pings < 20; pings++) await client.ping();
    expect(wire.statuses).toEqual([200, ...Array(5).fill(405)]);
    expect([wire.open("GET"), wire.open("POST")]).toEqual([1, 0]);
    expect(await sessions()).toBe(1);
    await client.close();
    await until(async () => {
      clock.advance(MINUTE);
      return (await sessions()) === 0;
    });
  });

  test("that is refused leaves nothing open in the SDK's client either", async () => {
    const wire = watchedFetch();
    const transport = new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`), {
      requestInit: { headers: { authorization: `Bearer ${gateway.admin}` } },
      fetch: wire.fetch,
    });
    const client = new SdkClient({ name: "tests", version: "1" });
    await client.connect(transport as Transport);
    await until(() => wire.open("GET") === 1);
    const refused = client.callTool({ name: "up__none", arguments: {} });
    await expect(refused).rejects.toMatchObject({ data: { code: "unknown_tool" } });
    await until(() => wire.statuses.length === 2);
    expect(wire.statuses).toEqual([200, 405]);
    expect([wire.open("GET"), wire.open("POST")]).toEqual([1, 0]);
    await client.close();
  });

  describe("in a batch", () => {
    test("keeps its answer for a client that lost the stream after another answer", async () => {
      const gate = Promise.withResolvers<object>();
      upstream.answer(({ input }) => (input.which === "b" ? gate.promise : text("the answer of a")));
      const client = await connect(gateway, { version: "2025-03-26" });
      const abort = new AbortController();
      const batch = [slow("a"), slow("b")];
      const stream = watch(await client.open(batch, { signal: abort.signal }), abort);
      const { id } = await stream.saw(({ data }) => data.includes("the answer of a"));
      stream.leave();
      await stream.ended;
      let resumed = await client.listen({ "last-event-id": id });
      // The server notices a little later than the client that the connection is gone.
      while (resumed.status === 409) resumed = await client.listen({ "last-event-id": id });
      expect(resumed.status).toBe(200);
      gate.resolve(text("the answer of b"));
      await resumed.saw(({ data }) => data.includes("the answer of b"));
      resumed.leave();
    });

    const ORDERS: readonly [string, (cancel: () => Promise<unknown>, answer: () => void) => Promise<void>][] =
      [
        [
          "before the other is answered",
          async (cancel, answer) => {
            await cancel();
            answer();
          },
        ],
        [
          "after the other was answered",
          async (cancel, answer) => {
            answer();
            await until(hasAnswered);
            await cancel();
          },
        ],
      ];
    const hasAnswered = async () =>
      (await ledger(gateway)).some(({ phase, outcome }) => phase === "outcome" && outcome === "succeeded");

    test.each(ORDERS)(
      "may be cancelled %s: the other one is answered, and the POST ends",
      async (_, inOrder) => {
        const gate = Promise.withResolvers<object>();
        upstream.answer(({ input }) => (input.which === "b" ? gate.promise : new Promise(() => {})));
        const client = await connect(gateway, { version: "2025-03-26" });
        const [a, b] = [slow("a"), slow("b")];
        // This protocol version has no priming event, so nothing arrives before the answers do.
        const posted = client.post([a, b]);
        await until(() => upstream.calls.length === 2);
        await inOrder(
          () => client.tell("notifications/cancelled", { requestId: a.id }),
          () => gate.resolve(text("the answer of b")),
        );
        const { messages } = await posted;
        expect(messages.find(({ id }) => id === b.id)?.result.content[0].text).toBe("the answer of b");
        expect(messages.find(({ id }) => id === a.id)?.result).toBeUndefined();
      },
    );
  });

  describe("reserves its id:", () => {
    const WAYS: readonly [string, (client: Client, older: Older, body: unknown) => Promise<number>][] = [
      ["Streamable HTTP", async (client, _, body) => (await client.post(body)).status],
      ["HTTP+SSE", async (_, { send }, body) => (await send(body)).status],
    ];

    test.each(WAYS)(
      "a second request with it is refused by %s, and the first is answered",
      async (by, send) => {
        const gate = Promise.withResolvers<object>();
        upstream.answer(() => gate.promise);
        const client = await connect(gateway);
        const older = await connectOlder(gateway, gateway.admin);
        const first = slow("first");
        const isOlder = by === "HTTP+SSE";
        const stream = isOlder ? older.stream : watch(await client.open(first));
        if (isOlder) expect((await older.send(first)).status).toBe(202);
        await until(() => upstream.calls.length === 1);
        for (const body of [
          { ...request("tools/list"), id: first.id },
          { ...slow("second"), id: first.id },
          { ...request("ping"), id: first.id },
          [request("ping"), { ...slow("second"), id: first.id }],
        ]) {
          expect(await send(client, older, body)).toBe(400);
        }
        gate.resolve(text("the first"));
        const { data } = await stream.saw(({ data }) => data.includes("the first"));
        expect(JSON.parse(data).id).toBe(first.id);
        expect(upstream.calls).toHaveLength(1);
        // The id can be used again.
        expect([200, 202]).toContain(await send(client, older, { ...request("ping"), id: first.id }));
        older.stream.leave();
      },
    );

    test.each(WAYS)("twice in one batch it is refused by %s, and nothing is called", async (_, send) => {
      const client = await connect(gateway, { version: "2025-03-26" });
      const older = await connectOlder(gateway, gateway.admin);
      const twice = slow("twice");
      expect(await send(client, older, [twice, { ...twice }])).toBe(400);
      expect(await send(client, older, [twice, request("ping"), { ...request("ping"), id: twice.id }])).toBe(
        400,
      );
      expect(upstream.calls).toEqual([]);
      expect(await client.toolNames()).toContain("up__slow");
      older.stream.leave();
    });
  });
});

type Method = "GET" | "POST";

/**
 * Records the status of a client's GETs and counts the streams that are still open. Replaces the wait that the server
 * asks for with 1 ms.
 */
function watchedFetch() {
  const statuses: number[] = [];
  const open = { GET: 0, POST: 0 };
  return {
    statuses,
    open: (method: Method) => open[method],
    async fetch(url: string | URL, init?: RequestInit): Promise<Response> {
      const method = init?.method === "GET" ? "GET" : "POST";
      const response = await fetch(url, init);
      if (method === "GET") statuses.push(response.status);
      if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return response;
      open[method] += 1;
      const decoder = new TextDecoder();
      const encoder = new TextEncoder();
      const body = response.body?.pipeThrough(
        new TransformStream<Uint8Array, Uint8Array>({
          transform(chunk, controller) {
            const frames = decoder.decode(chunk, { stream: true }).replace(/^retry: \d+$/m, "retry: 1");
            controller.enqueue(encoder.encode(frames));
          },
          flush() {
            open[method] -= 1;
          },
        }),
      );
      return new Response(body ?? null, { status: response.status, headers: response.headers });
    },
  };
}
