import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { finishedTask } from "../access/routes.ts";
import { FakeClock } from "../support/clock.ts";
import { type Answered, startGateway, type TestGateway } from "../support/gateway.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
// At the start of a minute, so that the clock's minutes are the ledger's minutes.
const clock = new FakeClock(Date.UTC(2026, 0, 2, 3, 4, 0));
let gateway: TestGateway;
let other: string;
beforeAll(async () => {
  gateway = await startGateway({ clock });
  other = await gateway.workspace("other");
  await gateway.agent("agent");
});
afterAll(() => gateway.stop());

const ask = (token = gateway.admin) => gateway.call("GET", "/v1/tiers", { token });
const set = (limits: object, token = gateway.admin) =>
  gateway.call("PATCH", "/v1/workspace", { token, body: { limits } });
const headers = ({ headers }: Answered) => ({
  policy: headers.get("ratelimit-policy"),
  limit: headers.get("ratelimit"),
  exceeded: headers.get("gatehouse-limit-exceeded"),
});
/** Refills the bucket and moves on to the start of a minute. */
function refill(): void {
  clock.advance(2 * MINUTE - (clock.now() % MINUTE));
}

describe("every counted response reports exactly what is left", () => {
  test("at 600 a minute, refilled with 10 a second", async () => {
    refill();
    const policy = '"requests";q=600;w=60';
    expect(headers(await ask())).toEqual({ policy, limit: '"requests";r=599;t=1', exceeded: null });
    for (let index = 0; index < 10; index++) await ask();
    expect(headers(await ask()).limit).toBe('"requests";r=588;t=2');
    clock.advance(100);
    expect(headers(await ask()).limit).toBe('"requests";r=588;t=2');
    clock.advance(150);
    expect(headers(await ask()).limit).toBe('"requests";r=588;t=2');
    clock.advance(SECOND);
    expect(headers(await ask()).limit).toBe('"requests";r=597;t=1');
    clock.advance(MINUTE);
    expect(headers(await ask()).limit).toBe('"requests";r=599;t=1');
  });

  test("refusals count too, for a missing scope and for a bad body", async () => {
    refill();
    const token = await gateway.token({ scopes: ["tasks:read"] });
    expect(headers(await ask(token)).limit).toBe('"requests";r=598;t=1');
    const bad = await gateway.call("POST", "/v1/agents", { raw: "{" });
    expect([bad.status, headers(bad).limit]).toEqual([400, '"requests";r=597;t=1']);
  });

  test("streams, probes, unknown paths and unauthenticated calls neither count nor report limits", async () => {
    refill();
    const task = await finishedTask(gateway, "agent");
    const uncounted = [
      await gateway.call("GET", `/v1/tasks/${task}/events`),
      await gateway.call("POST", "/v1/tasks?stream=true", { body: { agent: "agent", prompt: "x" } }),
      await gateway.call("GET", "/livez"),
      await gateway.call("GET", "/metrics"),
      await gateway.call("GET", "/openapi.json"),
      await gateway.call("GET", "/nothing"),
      await gateway.call("GET", "/v1/tiers", { token: null }),
      await gateway.call("GET", "/v1/tiers", { token: "gth_unknown" }),
    ];
    for (const answer of uncounted) {
      expect(headers(answer)).toEqual({ policy: null, limit: null, exceeded: null });
    }
    expect(headers(await ask()).limit).toBe('"requests";r=599;t=1');
    const plain = await gateway.call("POST", "/v1/tasks?stream=false", {
      body: { agent: "agent", prompt: "x" },
    });
    expect(headers(plain).limit).toBe('"requests";r=598;t=1');
  });
});

describe("soft", () => {
  test("serves calls over the limit, reports it, and writes one entry a minute", async () => {
    refill();
    await set({ requests_per_minute: 5, enforcement: "soft" });
    refill();
    for (let index = 0; index < 5; index++) expect(headers(await ask()).exceeded).toBeNull();
    for (let index = 0; index < 20; index++) {
      const answer = await ask();
      expect(answer.status).toBe(200);
      expect(headers(answer)).toEqual({
        policy: '"requests";q=5;w=60',
        limit: '"requests";r=0;t=60',
        exceeded: "requests",
      });
    }
    clock.advance(MINUTE - 1 - (clock.now() % MINUTE));
    for (let index = 0; index < 10; index++) await ask();
    clock.advance(1);
    for (let index = 0; index < 10; index++) await ask();

    await set({ requests_per_minute: 600 });
    const { body } = await gateway.call("GET", "/v1/ledger?action=limit.exceeded");
    expect(body.data).toHaveLength(2);
    for (const entry of body.data) {
      expect(entry).toMatchObject({
        actor: "system",
        channel: "system",
        outcome: "allowed",
        phase: "single",
      });
      expect(entry.detail).toMatchObject({ limit: "requests", enforcement: "soft" });
    }
    const minutes = body.data.map((entry: { ts: string }) => entry.ts.slice(0, 16));
    expect(new Set(minutes).size).toBe(2);
    const theirs = await gateway.call("GET", "/v1/ledger?action=limit.exceeded", { token: other });
    expect(theirs.body.data).toEqual([]);
  });

  test("and the metrics count each request over the limit", async () => {
    const { body } = await gateway.call("GET", "/metrics");
    expect(body).toMatch(/gatehouse_limit_exceeded_total\{workspace="default",limit="requests"\} \d\d/);
  });
});

describe("enforced", () => {
  test("refuses with 429 and Retry-After, until the bucket has a token again", async () => {
    refill();
    await set({ requests_per_minute: 6, enforcement: "enforced" });
    refill();
    for (let index = 0; index < 6; index++) expect((await ask()).status).toBe(200);
    const refused = await ask();
    expect([refused.status, refused.body.code]).toEqual([429, "rate_limited"]);
    expect(refused.headers.get("content-type")).toBe("application/problem+json");
    expect(refused.headers.get("retry-after")).toBe("10");
    expect(headers(refused)).toEqual({
      policy: '"requests";q=6;w=60',
      limit: '"requests";r=0;t=60',
      exceeded: "requests",
    });
    clock.advance(9_999);
    expect((await ask()).headers.get("retry-after")).toBe("1");
    clock.advance(1);
    expect((await ask()).status).toBe(200);
    expect((await ask()).status).toBe(429);
  });

  test("applies to reading and writing alike, and to every token of the workspace", async () => {
    const calls: readonly [method: string, path: string, body: object | null][] = [
      ["GET", "/v1/ledger", null],
      ["POST", "/v1/tasks", { agent: "agent", prompt: "x" }],
      ["POST", "/v1/agents/agent/resume", null],
      ["PATCH", "/v1/workspace", { limits: { requests_per_minute: 600 } }],
    ];
    for (const [method, path, body] of calls) {
      expect((await gateway.call(method, path, body ? { body } : {})).status).toBe(429);
    }
    expect(
      (await gateway.call("GET", "/v1/agents/agent", { token: gateway.gateway.operatorSecret })).status,
    ).toBe(401);
  });

  test("lets streams through, and other workspaces", async () => {
    const stream = await gateway.call("POST", "/v1/tasks?stream=true", {
      body: { agent: "agent", prompt: "x" },
    });
    expect(stream.status).toBe(200);
    expect(headers(await ask(other))).toEqual({
      policy: '"requests";q=600;w=60',
      limit: '"requests";r=599;t=1',
      exceeded: null,
    });
  });

  test("a flood without a token costs the workspace nothing", async () => {
    refill();
    for (let index = 0; index < 50; index++) {
      expect((await gateway.call("GET", "/v1/tiers", { token: null })).status).toBe(401);
    }
    expect(headers(await ask()).limit).toBe('"requests";r=5;t=10');
  });

  test("new limits apply from the next request on", async () => {
    refill();
    const changed = await set({ requests_per_minute: 3 });
    expect(headers(changed).policy).toBe('"requests";q=6;w=60');
    expect(headers(await ask())).toMatchObject({
      policy: '"requests";q=3;w=60',
      limit: '"requests";r=2;t=20',
    });
    await ask();
    await set({ enforcement: "soft" });
    const soft = await ask();
    expect([soft.status, headers(soft).exceeded]).toEqual([200, "requests"]);
  });
});
