/**
 * The stop button of a workspace and of the whole node: what ends, what is refused, what is recorded and what is
 * unaffected.
 */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { addConnector, connect, request } from "../mcp/support.ts";
import { allEvents } from "../support/events.ts";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { ownConnection } from "../support/own-connection.ts";
import { type ScriptedMcp, startScriptedMcp, text } from "../support/scripted-mcp.ts";
import {
  dispatch,
  ended,
  gate,
  ledger,
  openEvents,
  run,
  unsettled,
  until,
  yamlOf,
} from "../tasks/support.ts";

setDefaultTimeout(60_000);

let upstream: FakeModel;
let gateway: TestGateway;
let operator: { token: string; headers: Record<string, string> };

beforeEach(async () => {
  upstream = startFakeModel({ fallback: { hang: true } });
  gateway = await startGateway({
    yaml: yamlOf(upstream.url, {
      tiers: { 1: ["hangs"], 2: ["answers"] },
      limits: { concurrent_tasks: 2, enforcement: "enforced" },
    }),
  });
  upstream.script("answers", { chunks: ["done"] });
  operator = { token: gateway.gateway.operatorSecret, headers: { "gatehouse-operator": "ada" } };
  await gateway.agent("one");
  await gateway.agent("two");
});
afterEach(async () => {
  await gateway.stop();
  await upstream.close();
});

const STOP = "/v1/workspace/stop";
const RESUME = "/v1/workspace/resume";
const decisions = async (token?: string) =>
  (await ledger(gateway, token)).filter(({ action }) => action.startsWith("oversight."));

describe("a caller without the right", () => {
  test.each([STOP, RESUME])("%s needs approvals:write, and not an agent's token", async (path) => {
    expect((await gateway.call("POST", path, { token: null })).body.code).toBe("unauthenticated");
    const token = await gateway.token({ scopes: ["agents:write", "tasks:write", "settings:write"] });
    const refused = await gateway.call("POST", path, { token });
    expect([refused.status, refused.body.code]).toEqual([403, "scope_missing"]);
    const own = await gateway.token({ agent: "one", scopes: ["approvals:write"] });
    const narrowed = await gateway.call("POST", path, { token: own });
    expect([narrowed.status, narrowed.body.code]).toEqual([403, "agent_forbidden"]);
    expect((await gateway.call("POST", path, { body: { reason: "x" } })).status).toBe(422);
    expect((await gateway.call("GET", "/v1/workspace")).body.status).toBe("active");
  });

  test.each(["stop", "resume"])("/operator/workspaces/%s is only for the operator", async (verb) => {
    const path = `/operator/workspaces/${verb}`;
    expect((await gateway.call("POST", path, { token: null })).status).toBe(401);
    expect((await gateway.call("POST", path)).status).toBe(404);
    expect((await gateway.call("GET", "/v1/workspace")).body.status).toBe("active");
  });
});

test("a stop cancels running and waiting work and pending approvals, and refuses new work until a resume", async () => {
  await gateway.agent("careful", { approvals: ["*"] });
  upstream.script("answers", (_request, call) =>
    call === 0 ? { toolCalls: [{ name: "time__now", arguments: {} }] } : { chunks: ["done"] },
  );
  const waits = await dispatch(gateway, { agent: "careful", tier: 2, tools: ["time.now"] });
  await until(async () => (await gateway.call("GET", "/v1/approvals")).body.data.length === 1);
  const tasks = [waits];
  for (const agent of ["one", "two", "one", "two"]) tasks.push(await dispatch(gateway, { agent }));
  await until(() => upstream.requests.filter(({ model }) => model === "hangs").length === 2);
  const streams = await Promise.all(tasks.map((id) => openEvents(gateway, id)));

  const answer = await gateway.call("POST", STOP);
  expect([answer.status, answer.body]).toEqual([
    200,
    { name: "default", status: "stopped", created_at: expect.any(String) },
  ]);
  for (const [n, id] of tasks.entries()) {
    const task = (await gateway.call("GET", `/v1/tasks/${id}`)).body;
    expect({ n, status: task.status, error: task.error }).toEqual({
      n,
      status: "cancelled",
      error: { code: "agent_stopped", message: "The workspace was stopped." },
    });
  }
  for (const stream of streams) expect((await allEvents(stream)).at(-1)?.event).toBe("task.finished");
  await until(() => upstream.requests.filter(({ aborted }) => aborted).length === 2);
  expect((await gateway.call("GET", "/v1/approvals")).body.data).toEqual([]);

  const refused = await gateway.call("POST", "/v1/tasks", { body: { agent: "one", prompt: "hi", tier: 2 } });
  expect([refused.status, refused.body.code, refused.body.detail]).toEqual([
    409,
    "agent_stopped",
    "The workspace is stopped.",
  ]);
  expect((await gateway.call("GET", "/v1/agents/one")).body.status).toBe("stopped");
  const single = await gateway.call("POST", "/v1/agents/one/resume");
  expect([single.status, single.body.code]).toEqual([409, "agent_stopped"]);
  // An agent created now cannot run either, because the workspace is stopped.
  await gateway.agent("late");
  const late = await gateway.call("POST", "/v1/tasks", { body: { agent: "late", prompt: "hi", tier: 2 } });
  expect(late.body.code).toBe("agent_stopped");

  await gateway.call("POST", "/v1/agents/two/stop");
  const resumed = await gateway.call("POST", RESUME);
  expect([resumed.status, resumed.body.status]).toEqual([200, "active"]);
  upstream.script("answers", { chunks: ["done"] });
  expect(await run(gateway, { agent: "one", tier: 2 })).toMatchObject({ status: "succeeded" });
  // An agent that was stopped individually stays stopped.
  expect((await gateway.call("GET", "/v1/agents/two")).body.status).toBe("stopped");

  const made = (await decisions()).filter(({ outcome }) => outcome === "succeeded");
  expect<unknown>(made.map(({ action, agent, detail }) => ({ action, agent, detail }))).toEqual([
    { action: "oversight.stop", agent: null, detail: { extent: "workspace" } },
    { action: "oversight.stop", agent: "two", detail: null },
    { action: "oversight.resume", agent: null, detail: { extent: "workspace" } },
  ]);
  expect(unsettled(await ledger(gateway))).toEqual([]);
});

test("an agent created in a stopped workspace is shown as stopped, and as active once it is resumed", async () => {
  const made = (name: string) =>
    gateway.call("POST", "/v1/agents", { body: { name, owner: "tests", memory_scope: "support" } });
  expect((await gateway.call("POST", STOP)).status).toBe(200);
  const late = await made("late");
  expect([late.status, late.body.status]).toEqual([201, "stopped"]);
  expect((await gateway.call("GET", "/v1/agents/late")).body.status).toBe("stopped");
  expect((await gateway.call("POST", RESUME)).status).toBe(200);
  expect((await gateway.call("GET", "/v1/agents/late")).body.status).toBe("active");
  expect((await made("later")).body.status).toBe("active");
});

describe("direct calls of clients over MCP", () => {
  let mcp: ScriptedMcp;
  const called = gate();
  beforeEach(async () => {
    mcp = startScriptedMcp(["slow"]);
    await addConnector(gateway, "files", mcp.url);
  });
  afterEach(() => mcp.close());

  test("are ended and refused, with and without an agent", async () => {
    const never = gate();
    mcp.answer(async () => {
      called.open();
      await never.opened;
      return text("late");
    });
    const token = await gateway.token({ agent: "one", scopes: ["tools:*", "connectors:read"] });
    const clients = [await connect(gateway, {}), await connect(gateway, { token })];
    const body = { name: "files__slow", arguments: {} };
    const out = clients.map((client) => client.post(request("tools/call", body)));
    await until(() => mcp.calls.length === 2);
    expect((await gateway.call("POST", STOP)).status).toBe(200);
    const codes = (await Promise.all(out)).map(({ messages }) => messages.at(-1)?.error?.data?.code);
    expect(codes).toEqual(["agent_stopped", "agent_stopped"]);
    await until(() => mcp.heard.filter((method) => method === "notifications/cancelled").length === 2);
    const again = await Promise.all(clients.map((client) => client.post(request("tools/call", body))));
    expect(again.map(({ messages }) => messages.at(-1)?.error?.data?.code)).toEqual([
      "agent_stopped",
      "agent_stopped",
    ]);
    expect(mcp.calls.length).toBe(2);
    never.open();
    await gateway.call("POST", RESUME);
    mcp.answer(() => text("fine"));
    const [fine] = await Promise.all(clients.map((client) => client.post(request("tools/call", body))));
    expect(fine?.messages.at(-1)?.result?.content).toEqual([{ type: "text", text: "fine" }]);
    expect(unsettled(await ledger(gateway))).toEqual([]);
  });
});

test("another workspace continues, and a stop of the node ends both, each with its own entry", async () => {
  const other = await gateway.workspace("other");
  const call = (path: string, body: object) => gateway.call("POST", path, { token: other, body });
  await call("/v1/agents", { name: "there", owner: "x", memory_scope: "/" });
  await gateway.call("POST", STOP);
  const { id } = (await call("/v1/tasks", { agent: "there", prompt: "hi" })).body;
  await until(() => upstream.requests.length === 1);
  expect((await gateway.call("GET", "/v1/workspace", { token: other })).body.status).toBe("active");
  await gateway.call("POST", RESUME);

  const own = await dispatch(gateway, { agent: "one" });
  await until(() => upstream.requests.length === 2);
  const stopped = await gateway.call("POST", "/operator/workspaces/stop", operator);
  expect(stopped.status).toBe(200);
  expect(stopped.body.data.map((each: { name: string; status: string }) => [each.name, each.status])).toEqual(
    [
      ["default", "stopped"],
      ["other", "stopped"],
    ],
  );
  expect((await gateway.call("GET", `/v1/tasks/${own}`)).body.status).toBe("cancelled");
  expect((await gateway.call("GET", `/v1/tasks/${id}`, { token: other })).body.status).toBe("cancelled");
  for (const token of [gateway.admin, other]) {
    const last = (await decisions(token)).at(-1);
    expect(last).toMatchObject({
      action: "oversight.stop",
      actor: "user:ada",
      detail: { extent: "node" },
      oversight: { person: "ada", decision: "stop" },
    });
  }
  // One of the two workspaces is resumed by its own people. The operator resumes the other, which changes nothing for
  // the first.
  expect((await gateway.call("POST", RESUME, { token: other })).status).toBe(200);
  const before = (await decisions(other)).length;
  const resumed = await gateway.call("POST", "/operator/workspaces/resume", operator);
  expect(resumed.body.data.map(({ status }: { status: string }) => status)).toEqual(["active", "active"]);
  expect((await decisions(other)).length).toBe(before);
  upstream.script("hangs", { chunks: ["done"] });
  expect(await run(gateway, { agent: "one" })).toMatchObject({ status: "succeeded" });
});

test("it takes effect when nothing can be written, even for all workspaces, and is recorded late", async () => {
  const other = await gateway.workspace("other");
  const id = await dispatch(gateway, { agent: "one" });
  await until(() => upstream.requests.length === 1);
  const file = ownConnection(gateway.dataDir);
  try {
    file.exec("CREATE TRIGGER full BEFORE INSERT ON ledger BEGIN SELECT RAISE(ABORT, 'full'); END");
    const stopped = await gateway.call("POST", "/operator/workspaces/stop", operator);
    expect([stopped.status, stopped.headers.get("gatehouse-ledger")]).toEqual([200, null]);
    await until(() => upstream.requests[0]?.aborted === true);
    // Until the stop is recorded, nothing that would undo it is accepted.
    expect((await gateway.call("POST", RESUME)).status).toBe(503);
    file.exec("DROP TRIGGER full");
    for (const token of [gateway.admin, other]) {
      await until(async () => (await decisions(token)).some(({ action }) => action === "oversight.stop"));
      expect((await decisions(token)).at(-1)?.detail).toEqual({
        extent: "node",
        late_ms: expect.any(Number),
      });
      expect((await gateway.call("GET", "/v1/workspace", { token })).body.status).toBe("stopped");
    }
    expect((await ended(gateway, id)).status).toBe("cancelled");
    expect(file.query("SELECT status FROM workspaces").all()).toEqual([
      { status: "stopped" },
      { status: "stopped" },
    ]);
  } finally {
    file.exec("DROP TRIGGER IF EXISTS full");
  }
});

test("a flood that used up the workspace's requests does not prevent a stop", async () => {
  await gateway.call("PATCH", "/v1/workspace", { body: { limits: { requests_per_minute: 1 } } });
  await gateway.call("GET", "/v1/agents");
  expect((await gateway.call("GET", "/v1/agents")).status).toBe(429);
  expect((await gateway.call("POST", STOP)).status).toBe(200);
});
