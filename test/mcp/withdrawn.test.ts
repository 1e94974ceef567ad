/** Rights that were just withdrawn: new requests are refused, and calls in flight are broken off. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import { FakeClock } from "../support/clock.ts";
import { type FakeMcp, startFakeMcp } from "../support/fake-mcp/http.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { ledger, unsettled, until } from "../tasks/support.ts";
import { addConnector, connect, post, request, watch } from "./support.ts";

let gateway: TestGateway;
let upstream: FakeMcp;
let clock: FakeClock;
let agents = 0;
let agent: string;
beforeAll(async () => {
  clock = new FakeClock();
  gateway = await startGateway({ clock });
  upstream = startFakeMcp();
  await addConnector(gateway, "up", upstream.url);
  // The first request starts the timer of the sweeps.
  await connect(gateway);
});
afterAll(async () => {
  await gateway.stop();
  await upstream.close();
});
beforeEach(async () => {
  clock.advance(60_000);
  agent = `agent-${++agents}`;
  await gateway.agent(agent);
});
afterEach(async () => {
  expect(unsettled(await ledger(gateway))).toEqual([]);
});

async function issue(more: object = {}): Promise<{ id: string; secret: string }> {
  const { body } = await gateway.call("POST", "/v1/tokens", { body: { name: "t", agent, ...more } });
  return body;
}

/** Makes a call that its upstream never answers, and returns once the upstream has it. */
async function hang(client: Awaited<ReturnType<typeof connect>>) {
  const calls = () => upstream.heard.filter((method) => method === "tools/call").length;
  const before = calls();
  const response = await client.open(request("tools/call", { name: "up__hang", arguments: {} }));
  await until(() => calls() > before);
  return watch(response);
}

const cancelled = () => upstream.heard.filter((method) => method === "notifications/cancelled").length;

test("a revoked token is refused at once, and its streams and calls end, with the upstream notified", async () => {
  const { id, secret } = await issue();
  const client = await connect(gateway, { token: secret });
  const stream = await client.listen();
  const call = await hang(client);
  const before = cancelled();
  await gateway.call("DELETE", `/v1/tokens/${id}`);
  const answer = await client.post(request("tools/list"));
  expect([answer.status, answer.last.code]).toEqual([401, "invalid_token"]);
  await Promise.all([stream.ended, call.ended]);
  await until(() => cancelled() > before);
  expect(call.text()).not.toContain('"result"');
  const entries = await ledger(gateway);
  expect(entries.filter(({ actor }) => actor === `token:${id}`).at(-1)).toMatchObject({
    action: "tool.call",
    phase: "outcome",
    outcome: "cancelled",
  });
});

test("other tokens' streams and sessions stay", async () => {
  const kept = await connect(gateway, { token: (await issue()).secret });
  const stream = await kept.listen();
  const { id, secret } = await issue();
  const lost = await (await connect(gateway, { token: secret })).listen();
  await gateway.call("DELETE", `/v1/tokens/${id}`);
  await lost.ended;
  expect(await kept.toolNames()).toContain("up__echo");
  stream.leave();
});

test("a token that has expired is refused, and its streams and calls end when it expires", async () => {
  // Move to a time between two sweeps.
  clock.advance(7_000);
  const { secret } = await issue({ expires_in: "10m" });
  const client = await connect(gateway, { token: secret });
  const stream = await client.listen();
  const call = await hang(client);
  clock.advance(10 * 60_000 - 1);
  expect(await client.toolNames()).toContain("up__echo");
  clock.advance(1);
  await Promise.all([stream.ended, call.ended]);
  expect((await client.post(request("ping"))).status).toBe(401);
});

test("the older transport's stream ends when its token expires", async () => {
  clock.advance(7_000);
  const { secret } = await issue({ expires_in: "10m" });
  const response = await fetch(`${gateway.url}/mcp/sse`, {
    headers: { authorization: `Bearer ${secret}`, accept: "text/event-stream" },
  });
  const stream = watch(response);
  clock.advance(10 * 60_000 - 1);
  // By the time this is answered, the sweeps have done their work.
  await gateway.call("GET", "/v1/agents");
  clock.advance(1);
  await stream.ended;
});

test("a rotated secret's stream ends with its grace period", async () => {
  clock.advance(7_000);
  const { id, secret } = await issue();
  const client = await connect(gateway, { token: secret });
  await gateway.call("POST", `/v1/tokens/${id}/rotate`, { body: { grace: "10m" } });
  const stream = await client.listen();
  clock.advance(10 * 60_000 - 1);
  await gateway.call("GET", "/v1/agents");
  clock.advance(1);
  await stream.ended;
});

test("nothing is sent to a token that has expired, even if the timer that ends its stream is late", async () => {
  const { secret } = await issue({ expires_in: "10m" });
  const client = await connect(gateway, { token: secret });
  const stream = await client.listen();
  clock.setWall(clock.now() + 10 * 60_000);
  await gateway.call("PATCH", `/v1/agents/${agent}`, { body: { tools: ["time.*"] } });
  clock.advance(100);
  await stream.ended;
  expect(stream.text()).not.toContain("list_changed");
});

test("a rotated secret is refused, and its session ends with it; during its grace period both work in one session", async () => {
  const { id, secret } = await issue();
  const client = await connect(gateway, { token: secret });
  const rotated = await gateway.call("POST", `/v1/tokens/${id}/rotate`);
  expect((await client.post(request("ping"))).status).toBe(401);
  const fresh: string = rotated.body.secret;
  const with_ = (id: string, token: string) =>
    post(gateway, request("ping"), { token, headers: { "mcp-session-id": id } });
  // On a shared store, the client may already use its new secret on another server, so the session remains.
  expect((await with_(client.id, fresh)).status).toBe(gateway.databaseUrl === null ? 404 : 200);
  const again = await connect(gateway, { token: fresh });
  const graced = await gateway.call("POST", `/v1/tokens/${id}/rotate`, { body: { grace: "10m" } });
  expect((await with_(again.id, fresh)).status).toBe(200);
  expect((await with_(again.id, graced.body.secret)).status).toBe(200);
});

test("tools that an agent has lost are refused in an already open session", async () => {
  const client = await connect(gateway, { token: (await issue()).secret });
  expect((await client.call("up__echo", { text: "hi" })).content[0].text).toBe("hi");
  await gateway.call("PATCH", `/v1/agents/${agent}`, { body: { tools: ["time.*"] } });
  const refusal = await client.refusal("tools/call", { name: "up__echo", arguments: { text: "hi" } });
  expect(refusal).toMatchObject({ code: -32_003, data: { code: "tool_forbidden" } });
  expect(await client.toolNames()).not.toContain("up__echo");
  await gateway.call("PATCH", `/v1/agents/${agent}`, { body: { tools: ["up.*"] } });
  expect((await client.call("up__echo", { text: "hi" })).content[0].text).toBe("hi");
});

test("a stopped agent's calls end and new ones are refused, until it is resumed", async () => {
  const client = await connect(gateway, { token: (await issue()).secret });
  const admin = await connect(gateway);
  const own = await hang(client);
  const other = await hang(admin);
  const before = cancelled();
  await gateway.call("POST", `/v1/agents/${agent}/stop`);
  await own.ended;
  expect(own.text()).toContain('"code":"agent_stopped"');
  await until(() => cancelled() > before);
  const refusal = await client.refusal("tools/call", { name: "up__echo", arguments: {} });
  expect(refusal).toMatchObject({ code: -32_003, data: { code: "agent_stopped" } });
  expect(cancelled()).toBe(before + 1);
  const entries = await ledger(gateway);
  expect(entries.filter((entry) => entry.agent === agent && entry.phase === "outcome")).toMatchObject([
    { action: "tool.call", outcome: "cancelled", code: "agent_stopped", tool: "up.hang" },
  ]);
  await gateway.call("POST", `/v1/agents/${agent}/resume`);
  expect((await client.call("up__echo", { text: "hi" })).content[0].text).toBe("hi");
  await admin.end();
  await other.ended;
});

test("removing an agent ends its tokens and their streams", async () => {
  const client = await connect(gateway, { token: (await issue()).secret });
  const stream = await client.listen();
  const call = await hang(client);
  await gateway.call("DELETE", `/v1/agents/${agent}`);
  await Promise.all([stream.ended, call.ended]);
  expect((await client.post(request("tools/list"))).status).toBe(401);
});

test("ending a session aborts its calls", async () => {
  const client = await connect(gateway);
  const call = await hang(client);
  const before = cancelled();
  expect(await client.end()).toBe(200);
  await call.ended;
  await until(() => cancelled() > before);
  expect((await client.post(request("ping"))).status).toBe(404);
});

test("removing a connector fails its calls in flight, and its tools are unknown from then on", async () => {
  const second = startFakeMcp();
  await addConnector(gateway, "gone", second.url);
  const client = await connect(gateway);
  const response = client.post(request("tools/call", { name: "gone__hang", arguments: {} }));
  await until(() => second.heard.includes("tools/call"));
  expect((await gateway.call("DELETE", "/v1/connectors/gone")).status).toBe(204);
  expect((await response).last.result.isError).toBe(true);
  const refusal = await client.refusal("tools/call", { name: "gone__echo" });
  expect(refusal.data.code).toBe("unknown_tool");
  await second.close();
});
