/** The workspace's request limit, for requests that contain several calls or none. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { VIA_META } from "../../src/base/via.ts";
import { FakeClock } from "../support/clock.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { ledger } from "../tasks/support.ts";
import { type Client, connect, hello, post, request } from "./support.ts";

let gateway: TestGateway;
let clock: FakeClock;
let client: Client;
beforeEach(async () => {
  clock = new FakeClock();
  gateway = await startGateway({ clock });
  client = await connect(gateway);
});
afterEach(() => gateway.stop());

async function limit(requests_per_minute: number, enforcement: "soft" | "enforced"): Promise<void> {
  const { status } = await gateway.call("PATCH", "/v1/workspace", {
    body: { limits: { requests_per_minute, enforcement } },
  });
  expect(status).toBe(200);
}

const left = (answer: { headers: Headers }) =>
  Number(/r=(\d+)/.exec(answer.headers.get("ratelimit") ?? "")?.[1]);

describe("enforced", () => {
  test("beyond the limit a request is 429 and dispatches nothing; a ping and calls that stop work are served", async () => {
    await limit(5, "enforced");
    let answer = await client.post(request("tools/list"));
    for (let made = 0; made < 10 && answer.status === 200; made++)
      answer = await client.post(request("tools/list"));
    expect([answer.status, answer.last.code]).toEqual([429, "rate_limited"]);
    expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(answer.headers.get("ratelimit")).toMatch(/^"requests";r=0;t=\d+$/);
    expect((await client.post(request("tools/call", { name: "time__now", arguments: {} }))).status).toBe(429);
    expect((await post(gateway, hello())).status).toBe(429);
    expect((await client.post([request("ping"), request("tools/list")])).status).toBe(429);
    expect((await client.post(request("ping"))).last.result).toEqual({});
    expect((await client.tell("notifications/cancelled", { requestId: 1 })).status).toBe(202);
    const stream = await client.listen();
    expect(stream.status).toBe(200);
    stream.leave();
    clock.advance(60_000);
    const entries = await ledger(gateway);
    expect(entries.filter(({ action }) => action === "tool.call")).toEqual([]);
    expect(entries.filter(({ action }) => action === "limit.exceeded")).toHaveLength(1);
    expect(await client.toolNames()).toContain("time__now");
  });

  test("refused requests count too, so wrong requests do not evade the limit", async () => {
    await limit(5, "enforced");
    const statuses = new Set<number>();
    for (let made = 0; made < 12; made++) {
      const answer = await post(gateway, null, { raw: "{", headers: { "mcp-session-id": "none" } });
      statuses.add(answer.status);
    }
    expect(statuses).toEqual(new Set([400, 429]));
    clock.advance(60_000);
    statuses.clear();
    for (let made = 0; made < 12; made++) {
      statuses.add((await gateway.call("GET", "/mcp", { headers: { "mcp-session-id": "none" } })).status);
    }
    expect(statuses).toEqual(new Set([404, 429]));
  });
});

describe("soft", () => {
  test("beyond the limit everything is served and marked, and one entry says so", async () => {
    await limit(5, "soft");
    let answer = await client.post(request("tools/list"));
    for (let made = 0; made < 10; made++) answer = await client.post(request("tools/list"));
    expect(answer.status).toBe(200);
    expect(answer.headers.get("gatehouse-limit-exceeded")).toBe("requests");
    expect(answer.last.result.tools.length).toBeGreaterThan(0);
    const entries = await ledger(gateway);
    expect(entries.filter(({ action }) => action === "limit.exceeded")).toHaveLength(1);
  });
});

test("each request of a batch counts, but not a ping or an answer", async () => {
  const older = await connect(gateway, { version: "2025-03-26" });
  const before = left(await older.post(request("tools/list")));
  const batch = [
    request("tools/list"),
    request("ping"),
    request("tools/list"),
    { jsonrpc: "2.0", id: 9, result: {} },
  ];
  expect(left(await older.post(batch))).toBe(before - 2);
  expect((await older.post(request("ping"))).headers.get("ratelimit")).toBeNull();
});

test("a refused request counts once, whether or not its messages name the Gatehouses that they have passed", async () => {
  const lost = { headers: { "mcp-session-id": "none" } };
  const before = left(await post(gateway, request("tools/list"), lost));
  const named = request("tools/list", { _meta: { [VIA_META]: ["abcdefabcdef"] } });
  expect(left(await post(gateway, named, lost))).toBe(before - 1);
  expect(left(await post(gateway, request("tools/list"), lost))).toBe(before - 2);
});

test("a stream of either transport does not count, but an initialize does", async () => {
  const before = left(await client.post(request("tools/list")));
  const stream = await client.listen();
  expect(stream.headers.get("ratelimit")).toBeNull();
  stream.leave();
  expect(left(await post(gateway, hello()))).toBe(before - 1);
  expect(left(await client.post(request("tools/list")))).toBe(before - 2);
});

test("REST and MCP share the workspace's limit; another workspace has its own", async () => {
  for (let made = 0; made < 20; made++) await client.toolNames();
  const before = left(await client.post(request("tools/list")));
  expect(left(await gateway.call("GET", "/v1/agents"))).toBe(before - 1);
  const other = await connect(gateway, { token: await gateway.workspace("other") });
  expect(left(await other.post(request("tools/list")))).toBeGreaterThan(before);
});
