/** Sessions are opened and closed: idle ones are swept, their number is capped, and nothing remains of them. */
import { heapStats } from "bun:jsc";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { FakeClock } from "../support/clock.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { type ScriptedMcp, startScriptedMcp, text } from "../support/scripted-mcp.ts";
import { until } from "../tasks/support.ts";
import { addConnector, type Client, connect, request, watch } from "./support.ts";

const MINUTE = 60_000;
let gateway: TestGateway;
let upstream: ScriptedMcp;
let clock: FakeClock;
beforeEach(async () => {
  clock = new FakeClock();
  const yaml = "limits: { requests_per_minute: 1000000 }\nconnectors: { timeout_ms: 3600000 }\n";
  gateway = await startGateway({ clock, yaml });
  upstream = startScriptedMcp(["slow"]);
});
afterEach(async () => {
  await gateway.stop();
  await upstream.close();
});

async function open(): Promise<number> {
  const { body } = await gateway.call("GET", "/metrics");
  return Number(/^gatehouse_mcp_sessions (\d+)$/m.exec(body)?.[1]);
}

const isThere = async (client: Client) => (await client.post(request("ping"))).status === 200;

describe("a session without a stream", () => {
  test("is swept after half an hour without a request, and answers 404 from then on", async () => {
    const client = await connect(gateway);
    clock.advance(29 * MINUTE);
    expect(await open()).toBe(1);
    expect(await isThere(client)).toBe(true);
    clock.advance(29 * MINUTE);
    expect(await isThere(client)).toBe(true);
    clock.advance(31 * MINUTE);
    expect(await open()).toBe(0);
    expect((await client.post(request("ping"))).status).toBe(404);
  });

  test("is kept alive by a call that takes longer than that", async () => {
    await addConnector(gateway, "up", upstream.url);
    const gate = Promise.withResolvers<object>();
    upstream.answer(() => gate.promise);
    const client = await connect(gateway);
    const stream = watch(await client.open(request("tools/call", { name: "up__slow", arguments: {} })));
    await until(() => upstream.calls.length === 1);
    clock.advance(45 * MINUTE);
    expect(await open()).toBe(1);
    gate.resolve(text("done"));
    await stream.saw(({ data }) => data.includes("done"));
    clock.advance(29 * MINUTE);
    expect(await isThere(client)).toBe(true);
  });
});

describe("a session with a stream", () => {
  test("lives as long as the stream is open", async () => {
    const client = await connect(gateway);
    const stream = await client.listen();
    for (let hours = 0; hours < 3; hours++) {
      for (let minutes = 0; minutes < 60; minutes += 6) clock.advance(6 * MINUTE);
      expect(await open()).toBe(1);
    }
    stream.leave();
  });

  test("is swept five minutes after the stream was lost, and not before", async () => {
    const client = await connect(gateway);
    const stream = await client.listen();
    clock.advance(60 * MINUTE);
    stream.leave();
    await stream.ended;
    // The server notices a little later than the client that the client has left.
    await until(async () => {
      const again = await client.listen();
      again.leave();
      return again.status === 200;
    });
    clock.advance(4 * MINUTE);
    expect(await open()).toBe(1);
    await until(async () => {
      clock.advance(MINUTE);
      return (await open()) === 0;
    });
    expect((await client.post(request("ping"))).status).toBe(404);
  });

  test("of the older transport ends with the stream", async () => {
    const abort = new AbortController();
    const headers = { authorization: `Bearer ${gateway.admin}` };
    const stream = watch(await fetch(`${gateway.url}/mcp/sse`, { headers, signal: abort.signal }), abort);
    await stream.saw(({ event }) => event === "endpoint");
    expect(await open()).toBe(1);
    stream.leave();
    await until(async () => (await open()) === 0);
  });
});

test("a quiet stream of the older transport is kept open by comments, by the gateway's own clock", async () => {
  const abort = new AbortController();
  const headers = { authorization: `Bearer ${gateway.admin}` };
  const stream = watch(await fetch(`${gateway.url}/mcp/sse`, { headers, signal: abort.signal }), abort);
  await stream.saw(({ event }) => event === "endpoint");
  for (let minutes = 0; minutes < 10; minutes++) clock.advance(MINUTE);
  await until(() => stream.text().split(": keep-alive").length > 60);
  expect(await open()).toBe(1);
  stream.leave();
});

test("a stream shows at once that it is open", async () => {
  const client = await connect(gateway);
  const stream = await client.listen();
  await until(() => stream.text().startsWith(": open\n\n"));
  stream.leave();
});

test("a refused handshake leaves no session behind", async () => {
  for (let tries = 0; tries < 5; tries++) {
    expect((await gateway.call("POST", "/mcp", { body: request("initialize") })).status).toBe(400);
    expect((await gateway.call("POST", "/mcp", { body: [request("initialize")] })).status).toBe(400);
  }
  expect(await open()).toBe(0);
});

test("500 sessions that were opened and dropped leave neither sessions nor memory", async () => {
  const one = async () => {
    const client = await connect(gateway);
    await client.toolNames();
    const stream = await client.listen();
    stream.leave();
  };
  // Creates everything that is made once and then kept.
  for (let warm = 0; warm < 50; warm++) await one();
  clock.advance(31 * MINUTE);
  await until(async () => {
    clock.advance(MINUTE);
    return (await open()) === 0;
  });
  Bun.gc(true);
  const before = heapStats();
  for (let opened = 0; opened < 500; opened++) await one();
  expect(await open()).toBeGreaterThan(400);
  await until(async () => {
    clock.advance(MINUTE);
    return (await open()) === 0;
  });
  Bun.gc(true);
  const after = heapStats();
  expect(after.heapSize - before.heapSize).toBeLessThan(8 * 1024 * 1024);
  const servers = (stats: typeof after) => stats.objectTypeCounts.Server ?? 0;
  expect(servers(after)).toBeLessThan(servers(before) + 50);
}, 60_000);
