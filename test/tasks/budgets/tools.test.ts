/** Prices of tools: in tasks, over MCP with and without an agent, and with a person's approval. */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { addConnector, type Client, connect } from "../../mcp/support.ts";
import { type ScriptedMcp, startScriptedMcp, text } from "../../support/scripted-mcp.ts";
import { dispatch, ended, gate, ledger, run, type Stage, startStage, unsettled, until } from "../support.ts";
import { notices, reservations, spent } from "./support.ts";

setDefaultTimeout(60_000);

const CREDIT = 1_000_000;
const PRICES = 'tools: { "up.free": 0, "up.*": 0.25, "time.now": 0.000001, "time.*": 9 }';

let stage: Stage;
let upstream: ScriptedMcp;
beforeEach(async () => {
  upstream = startScriptedMcp(["free", "paid", "other"]);
  stage = await startStage({ tiers: { 1: ["a"] }, more: PRICES });
  await addConnector(stage.gateway, "up", upstream.url);
});
afterEach(async () => {
  await stage.stop();
  await upstream.close();
});

/** Scripts a model that asks for these calls in one answer, and then answers with text. */
function asks(...calls: readonly [name: string, input?: object][]): void {
  stage.upstream.script("a", (_request, index) =>
    index > 0
      ? { chunks: ["done"] }
      : { toolCalls: calls.map(([name, input = {}]) => ({ name, arguments: input })) },
  );
}
const TOOLS = ["up.free", "up.paid", "up.other", "time.now"];
const toolCalls = async () =>
  (await ledger(stage.gateway))
    .filter(({ action, phase }) => action === "tool.call" && phase !== "intent")
    .map(({ tool, outcome, code, credits }) => [tool, code ?? outcome, credits ?? 0]);
const agentToken = (agent: string) => stage.gateway.token({ agent, name: agent });

describe("in a task", () => {
  test("a call is refused before it is sent if the budget is spent, and ends the task", async () => {
    await stage.gateway.agent("poor", { budget: { credits_per_day: 0.25 } });
    asks(["up__paid"], ["up__free"], ["up__other"]);
    const task = await run(stage.gateway, { agent: "poor", tools: TOOLS });
    expect(task).toMatchObject({
      status: "failed",
      credits_consumed: 0.25,
      error: { code: "credits_exhausted" },
    });
    expect(upstream.calls.map(({ name }) => name)).toEqual(["paid", "free"]);
    expect(await toolCalls()).toEqual([
      ["up.paid", "succeeded", CREDIT / 4],
      ["up.free", "succeeded", 0],
      ["up.other", "credits_exhausted", 0],
    ]);
    expect(await spent(stage.gateway)).toBe(CREDIT / 4);
    expect(await reservations(stage.gateway)).toBe(0);
    expect(unsettled(await ledger(stage.gateway))).toEqual([]);
  });

  test("a denied call costs nothing, and a failed one its price, by the first pattern that matches", async () => {
    await stage.gateway.agent("plain");
    upstream.answer(({ name }) => ({ ...text("no"), isError: name === "other" }));
    asks(["time__now", { zone: 1, what: 2 }], ["time__now"], ["up__paid"], ["up__other"], ["up__unknown"]);
    const task = await run(stage.gateway, { agent: "plain", tools: TOOLS });
    expect(task).toMatchObject({ status: "succeeded", credits_consumed: 0.500001 });
    expect((await toolCalls()).map(([, ...came]) => came)).toEqual([
      ["invalid_arguments", 0],
      ["succeeded", 1],
      ["succeeded", CREDIT / 4],
      ["failed", CREDIT / 4],
      ["unknown_tool", 0],
    ]);
    expect(await spent(stage.gateway)).toBe(CREDIT / 2 + 1);
  });

  test("a call that is cut off may have taken effect, and is charged", async () => {
    await stage.gateway.agent("plain", { budget: { credits_per_day: 100 } });
    upstream.answer(() => new Promise(() => {}));
    asks(["up__paid"]);
    const id = await dispatch(stage.gateway, { agent: "plain", tools: TOOLS });
    await until(() => upstream.calls.length === 1);
    expect(await reservations(stage.gateway)).toBe(1);
    await stage.gateway.call("POST", `/v1/tasks/${id}/cancel`);
    expect(await ended(stage.gateway, id)).toMatchObject({ status: "cancelled", credits_consumed: 0.25 });
    expect(await reservations(stage.gateway)).toBe(0);
    expect(await spent(stage.gateway)).toBe(CREDIT / 4);
  });

  test("a call waits for another's reservation, and can be cancelled while it does", async () => {
    await stage.gateway.agent("plain", { budget: { credits_per_day: 0.5 } });
    const held = gate();
    upstream.answer(async () => {
      await held.opened;
      return text("done");
    });
    stage.upstream.script("a", ({ body }) =>
      body.messages.at(-1)?.role === "tool"
        ? { chunks: ["done"] }
        : { toolCalls: [{ name: "up__paid", arguments: {} }] },
    );
    const ids: string[] = [];
    for (let task = 0; task < 4; task++) {
      ids.push(await dispatch(stage.gateway, { agent: "plain", tools: TOOLS }));
    }
    await until(() => upstream.calls.length === 2 && stage.upstream.requests.length === 4);
    expect(await reservations(stage.gateway)).toBe(2);
    const open = (await stage.gateway.call("GET", "/v1/tasks")).body.data;
    const waits = open.find((task: { tools_called: object[] }) => task.tools_called.length === 0).id;
    const answer = await stage.gateway.call("POST", `/v1/tasks/${waits}/cancel`);
    expect([answer.body.status, answer.body.credits_consumed]).toEqual(["cancelled", 0]);
    held.open();
    const tasks = await Promise.all(ids.map((id) => ended(stage.gateway, id)));
    const called = tasks.filter(({ credits_consumed }) => credits_consumed > 0);
    expect(called).toHaveLength(2);
    expect(upstream.calls).toHaveLength(2);
    expect(await spent(stage.gateway)).toBe(CREDIT / 2);
    expect(await reservations(stage.gateway)).toBe(0);
  });
});

describe("over MCP", () => {
  let client: Client;
  const refusal = (name: string) => client.refusal("tools/call", { name, arguments: {} });

  test("an agent's call is refused before it is sent once its day is spent, unless the tool is free", async () => {
    await stage.gateway.agent("clerk", { budget: { credits_per_day: 0.5 } });
    client = await connect(stage.gateway, { token: await agentToken("clerk") });
    await client.call("up__paid");
    await client.call("up__paid");
    expect((await refusal("up__paid")).data.code).toBe("credits_exhausted");
    expect(upstream.calls).toHaveLength(2);
    expect((await client.call("up__free")).isError).not.toBe(true);
    expect(await toolCalls()).toEqual([
      ["up.paid", "succeeded", CREDIT / 4],
      ["up.paid", "succeeded", CREDIT / 4],
      ["up.paid", "credits_exhausted", 0],
      ["up.free", "succeeded", 0],
    ]);
    expect(await notices(stage.gateway)).toEqual([
      ["budget.warn", "agent_day", CREDIT / 2],
      ["limit.exceeded", "agent_day", CREDIT / 2],
    ]);
    expect(await spent(stage.gateway)).toBe(CREDIT / 2);
  });

  test("a call without an agent counts only against the workspace's month", async () => {
    await stage.gateway.agent("clerk", { budget: { credits_per_day: 0.25 } });
    await stage.gateway.call("PATCH", "/v1/workspace", { body: { budget: { credits_per_month: 0.75 } } });
    client = await connect(stage.gateway, { token: await stage.gateway.token({ scopes: ["tools:*"] }) });
    await client.call("up__paid");
    await client.call("up__paid");
    const acting = await connect(stage.gateway, { token: await agentToken("clerk") });
    await acting.call("up__other");
    expect((await refusal("up__paid")).data.code).toBe("credits_exhausted");
    expect(upstream.calls).toHaveLength(3);
    expect(await spent(stage.gateway)).toBe(0.75 * CREDIT);
    expect(await notices(stage.gateway)).toEqual([
      ["budget.warn", "agent_day", CREDIT / 4],
      ["limit.exceeded", "agent_day", CREDIT / 4],
      ["budget.warn", "workspace_month", 0.75 * CREDIT],
      ["limit.exceeded", "workspace_month", 0.75 * CREDIT],
    ]);
  });

  test("calls together spend no more than the budget, and a waiting call ends with its agent's stop", async () => {
    await stage.gateway.agent("clerk", { budget: { credits_per_day: 0.5 } });
    client = await connect(stage.gateway, { token: await agentToken("clerk") });
    const held = gate();
    upstream.answer(async () => {
      await held.opened;
      return text("done");
    });
    const calls = Array.from({ length: 5 }, () => refusal("up__paid").catch((error: unknown) => error));
    await until(() => upstream.calls.length === 2);
    expect(await reservations(stage.gateway)).toBe(2);
    expect((await stage.gateway.call("POST", "/v1/agents/clerk/stop")).status).toBe(200);
    for (const refused of await Promise.all(calls)) expect(refused.data.code).toBe("agent_stopped");
    expect(upstream.calls).toHaveLength(2);
    expect(await reservations(stage.gateway)).toBe(0);
    // The two calls in flight may have been carried out.
    expect(await spent(stage.gateway)).toBe(CREDIT / 2);
    expect(unsettled(await ledger(stage.gateway))).toEqual([]);
  });

  test("approval is not requested for a call that cannot be paid for; an approved call is charged as a task", async () => {
    await stage.gateway.agent("clerk", { approvals: ["up.*"], budget: { credits_per_day: 0.25 } });
    client = await connect(stage.gateway, { token: await agentToken("clerk") });
    const call = client.call("up__paid");
    let path = "";
    await until(async () => {
      const [asked] = (await stage.gateway.call("GET", "/v1/approvals")).body.data;
      if (asked) path = `/v1/tasks/${asked.task}/approvals/${asked.call_id}`;
      return path !== "";
    });
    expect(await reservations(stage.gateway)).toBe(0);
    expect((await stage.gateway.call("POST", path, { body: { decision: "approve" } })).status).toBe(200);
    expect((await call).isError).not.toBe(true);
    expect((await refusal("up__paid")).data.code).toBe("credits_exhausted");
    expect((await stage.gateway.call("GET", "/v1/approvals")).body.data).toEqual([]);
    expect(upstream.calls).toHaveLength(1);
    expect(await spent(stage.gateway)).toBe(CREDIT / 4);
  });

  test("a call approved after the budget is spent is refused, and its task reports it", async () => {
    await stage.gateway.agent("clerk", { approvals: ["up.paid"], budget: { credits_per_day: 0.25 } });
    client = await connect(stage.gateway, { token: await agentToken("clerk") });
    const call = client.call("up__paid");
    let asked: { task: string; call_id: string } | undefined;
    await until(async () => {
      [asked] = (await stage.gateway.call("GET", "/v1/approvals")).body.data;
      return asked !== undefined;
    });
    await client.call("up__other");
    const path = `/v1/tasks/${asked?.task}/approvals/${asked?.call_id}`;
    expect((await stage.gateway.call("POST", path, { body: { decision: "approve" } })).status).toBe(200);
    expect((await call).isError).toBe(true);
    expect(await ended(stage.gateway, asked?.task ?? "")).toMatchObject({
      status: "failed",
      credits_consumed: 0,
      error: { code: "credits_exhausted" },
    });
    expect(upstream.calls.map(({ name }) => name)).toEqual(["other"]);
    expect(unsettled(await ledger(stage.gateway))).toEqual([]);
  });
});
