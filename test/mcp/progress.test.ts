/** Slow calls: progress, cancellation, and answers that a broken connection missed. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { type ScriptedMcp, startScriptedMcp, text } from "../support/scripted-mcp.ts";
import { ledger, unsettled, until } from "../tasks/support.ts";
import { addConnector, connect, type Message, request, watch } from "./support.ts";

const FAKE_STDIO = join(import.meta.dir, "..", "support", "fake-mcp", "stdio.ts");

let gateway: TestGateway;
let upstream: ScriptedMcp;
beforeAll(async () => {
  gateway = await startGateway({ yaml: "limits: { requests_per_minute: 1000000 }\n" });
  upstream = startScriptedMcp(["slow"]);
  await addConnector(gateway, "up", upstream.url);
  const transport = { type: "stdio", command: process.execPath, args: [FAKE_STDIO] };
  const made = await gateway.call("POST", "/v1/connectors", {
    body: { name: "child", kind: "mcp", transport },
  });
  expect([made.status, made.body.status]).toEqual([201, "ready"]);
});
afterAll(async () => {
  expect(unsettled(await ledger(gateway))).toEqual([]);
  await gateway.stop();
  await upstream.close();
});

const called = (name: string, input: object, more: object = {}) =>
  request("tools/call", { name, arguments: input, ...more });

describe("progress of an upstream", () => {
  test("is not sent to a client that did not request it", async () => {
    const client = await connect(gateway);
    const { messages } = await client.post(called("child__progress", { steps: 3 }));
    expect(messages).toHaveLength(1);
  });

  test.each([["p"], [7], [0]])(
    "reaches the client with its own token %p, and increases",
    async (progressToken) => {
      const client = await connect(gateway);
      const { messages, last } = await client.post(
        called("child__progress", { steps: 3 }, { _meta: { progressToken } }),
      );
      const told = messages.slice(0, -1);
      expect(told.map(({ method }: Message) => method)).toEqual(Array(3).fill("notifications/progress"));
      expect(told.map(({ params }: Message) => params)).toMatchObject([
        { progressToken, progress: 1, total: 3, message: "step 1" },
        { progressToken, progress: 2, total: 3, message: "step 2" },
        { progressToken, progress: 3, total: 3, message: "step 3" },
      ]);
      expect(last.result.content[0].text).toBe("done");
    },
  );
});

describe("a call that is cancelled", () => {
  test("notifies its upstream, ends its POST, and has its outcome", async () => {
    const client = await connect(gateway);
    const asked = called("child__progress", { steps: 1, hang: true }, { _meta: { progressToken: 1 } });
    const stream = watch(await client.open(asked));
    await stream.saw(({ data }) => data.includes("step 1"));
    await client.tell("notifications/cancelled", { requestId: asked.id, reason: "enough" });
    await stream.ended;
    expect(stream.text()).not.toContain('"result"');
    // The error is not meant for the client, which no longer waits. It ends what the SDK would otherwise keep until
    // the session ends.
    expect(stream.text()).toContain('"code":-32800');
    await until(async () =>
      (await client.call("child__heard")).content[0].text.includes("notifications/cancelled"),
    );
    const outcome = (await ledger(gateway)).filter(({ tool }) => tool === "child.progress").at(-1);
    expect(outcome).toMatchObject({ phase: "outcome", outcome: "cancelled" });
  });

  test("never belongs to another client, whatever its id", async () => {
    const { promise, resolve } = Promise.withResolvers<object>();
    upstream.answer(() => promise);
    const client = await connect(gateway);
    const other = await connect(gateway);
    const asked = called("up__slow", {});
    const stream = watch(await client.open(asked));
    await until(() => upstream.calls.length > 0);
    await other.tell("notifications/cancelled", { requestId: asked.id });
    await client.tell("notifications/cancelled", { requestId: -1 });
    resolve(text("in time"));
    await stream.saw(({ data }) => data.includes("in time"));
  });

  test("is also cancelled over the older transport", async () => {
    const abort = new AbortController();
    const headers = { authorization: `Bearer ${gateway.admin}`, "content-type": "application/json" };
    const stream = watch(await fetch(`${gateway.url}/mcp/sse`, { headers, signal: abort.signal }), abort);
    const { data: endpoint } = await stream.saw(({ event }) => event === "endpoint");
    const send = (body: object) => fetch(endpoint, { method: "POST", headers, body: JSON.stringify(body) });
    const clientInfo = { name: "tests", version: "1" };
    await send(request("initialize", { protocolVersion: "2024-11-05", capabilities: {}, clientInfo }));
    await stream.saw(({ data }) => data.includes("serverInfo"));
    const asked = called("child__hang", {});
    await send(asked);
    await until(async () => (await ledger(gateway)).some(({ tool }) => tool === "child.hang"));
    await send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: asked.id } });
    await until(
      async () => (await ledger(gateway)).at(-2)?.outcome === "cancelled" || hasOutcome("child.hang"),
    );
    stream.leave();
  });
});

async function hasOutcome(tool: string): Promise<boolean> {
  return (await ledger(gateway)).some((entry) => entry.tool === tool && entry.phase === "outcome");
}

describe("a client whose connection broke", () => {
  test("gets the answer that it missed, and no other call's", async () => {
    const gates = [Promise.withResolvers<object>(), Promise.withResolvers<object>()] as const;
    upstream.answer(({ input }) => gates[input.which === 0 ? 0 : 1].promise);
    const client = await connect(gateway);
    const abort = new AbortController();
    const first = watch(await client.open(called("up__slow", { which: 0 }), { signal: abort.signal }));
    const second = watch(await client.open(called("up__slow", { which: 1 })));
    const { id } = await first.saw(({ id }) => id !== "");
    abort.abort();
    await first.ended;
    gates[0].resolve(text("missed"));
    gates[1].resolve(text("another's"));
    await second.saw(({ data }) => data.includes("another's"));
    await until(() => hasOutcome("up.slow"));
    const resumed = await client.listen({ "last-event-id": id });
    expect(resumed.status).toBe(200);
    await resumed.saw(({ data }) => data.includes("missed"));
    expect(resumed.text()).not.toContain("another's");
    resumed.leave();
  });

  test("gets it even if it returns before the answer exists", async () => {
    const gate = Promise.withResolvers<object>();
    upstream.answer(() => gate.promise);
    const client = await connect(gateway);
    const abort = new AbortController();
    const first = watch(await client.open(called("up__slow", {}), { signal: abort.signal }));
    const { id } = await first.saw(({ id }) => id !== "");
    abort.abort();
    await first.ended;
    let resumed = await client.listen({ "last-event-id": id });
    // The server notices a little later than the client that the connection is gone.
    while (resumed.status === 409) resumed = await client.listen({ "last-event-id": id });
    gate.resolve(text("at last"));
    await resumed.saw(({ data }) => data.includes("at last"));
    resumed.leave();
  });

  test("is refused unsent events, and another session's", async () => {
    const client = await connect(gateway);
    const other = await connect(gateway);
    await client.call("time__now");
    for (const id of ["999999", "none", "-1"]) {
      expect((await other.listen({ "last-event-id": id })).status).toBe(400);
    }
    // Ids count within a session, so an id from another session refers to this one's own events.
    const resumed = await other.listen({ "last-event-id": "1" });
    await until(() => resumed.text() !== "");
    expect(resumed.text()).not.toContain('"now"');
    resumed.leave();
  });
});

test("a second stream of one session is refused while the first is open", async () => {
  const client = await connect(gateway);
  const first = await client.listen();
  expect((await client.listen()).status).toBe(409);
  first.leave();
});
