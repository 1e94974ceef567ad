import { afterAll, beforeAll, expect, test } from "bun:test";
import { signIn } from "../access/session-support.ts";
import { FakeClock } from "../support/clock.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

const LIMIT = 5;
const clock = new FakeClock();
let gateway: TestGateway;
let bound: string;
let flooding: { readonly id: string; readonly secret: string };
beforeAll(async () => {
  gateway = await startGateway({ clock });
  await gateway.agent("agent");
  bound = await gateway.token({ agent: "agent", scopes: ["agents:read"] });
  const issued = await gateway.call("POST", "/v1/tokens", {
    body: { name: "flood", scopes: ["tasks:read"] },
  });
  flooding = issued.body;
  await gateway.call("PATCH", "/v1/workspace", {
    body: { limits: { requests_per_minute: LIMIT, enforcement: "enforced" } },
  });
  while ((await gateway.call("GET", "/v1/tiers")).status !== 429);
});
afterAll(() => gateway.stop());

test("with an empty bucket the stop button and cancel still work, and are counted", async () => {
  const stop = await gateway.call("POST", "/v1/agents/agent/stop");
  expect([stop.status, stop.body.status]).toEqual([200, "stopped"]);
  expect(stop.headers.get("gatehouse-limit-exceeded")).toBe("requests");
  expect(stop.headers.get("gatehouse-ledger")).not.toBeNull();
  const cancel = await gateway.call("POST", "/v1/tasks/task_01m7yzmt98ew6t00f2wm1qh454/cancel");
  expect([cancel.status, cancel.body.code]).toEqual([404, "not_found"]);
  expect((await gateway.call("POST", "/v1/agents/agent/resume")).status).toBe(429);
});

test("and a token that causes the flood can be revoked", async () => {
  const { id, secret } = flooding;
  expect((await gateway.call("DELETE", `/v1/tokens/${id}`)).status).toBe(204);
  expect((await gateway.call("GET", "/v1/tiers", { token: secret })).status).toBe(401);
});

test("and browsers can sign in and out and see their session, but nothing else", async () => {
  const { admin } = gateway;
  const signedIn = await gateway.call("POST", "/v1/session");
  expect([signedIn.status, signedIn.headers.get("gatehouse-limit-exceeded")]).toEqual([201, "requests"]);
  const first = await signIn(gateway, admin);
  const second = await signIn(gateway, admin);
  expect((await first.ask("GET", "/v1/agents")).status).toBe(429);
  expect((await first.ask("GET", "/v1/sessions")).status).toBe(429);
  const read = await first.ask("GET", "/v1/session");
  expect([read.status, read.headers.get("gatehouse-limit-exceeded")]).toEqual([200, "requests"]);
  expect((await first.ask("DELETE", `/v1/sessions/${second.id}`)).status).toBe(204);
  expect((await second.ask("GET", "/v1/session")).status).toBe(401);
  expect((await first.ask("DELETE", "/v1/session")).status).toBe(204);
  expect((await first.ask("GET", "/v1/session")).status).toBe(401);
});

test("and so does the operator of this machine", async () => {
  const operator = { token: gateway.gateway.operatorSecret, headers: { "gatehouse-operator": "ada" } };
  expect((await gateway.call("GET", "/v1/workspace", operator)).status).toBe(200);
});

test("a refused stream counts: with an empty bucket it is 429, and leaves no entry", async () => {
  const entries = async () => {
    const operator = { token: gateway.gateway.operatorSecret, headers: { "gatehouse-operator": "ada" } };
    const { body } = await gateway.call("GET", "/v1/ledger?order=desc&limit=1", operator);
    return body.data[0].seq as number;
  };
  const body = { agent: "nobody", prompt: "x" };
  const before = await entries();
  for (let index = 0; index < 10; index++) {
    const answers = [
      await gateway.call("POST", "/v1/tasks?stream=true", { body }),
      await gateway.call("GET", "/v1/tasks/none/events"),
      await gateway.call("GET", "/v1/tasks/none/events", { token: bound }),
      await gateway.call("GET", "/metrics", { token: bound, headers: { "x-forwarded-for": "10.0.0.1" } }),
    ];
    for (const answer of answers) {
      expect([answer.status, answer.body.code]).toEqual([429, "rate_limited"]);
      expect(answer.headers.get("retry-after")).toBe("12");
      expect(answer.headers.get("gatehouse-ledger")).toBeNull();
    }
  }
  // The one entry in between is the read of the ledger itself.
  expect(await entries()).toBe(before + 1);

  clock.advance(60_000);
  const refused = await gateway.call("GET", "/v1/tasks/none/events");
  expect([refused.status, refused.headers.get("ratelimit")]).toEqual([404, `"requests";r=${LIMIT - 1};t=12`]);
});
