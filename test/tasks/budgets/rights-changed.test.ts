/** Tool calls that are no longer permitted once they have waited for their budget, in tasks and over MCP. */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { addConnector, connect, request } from "../../mcp/support.ts";
import { FakeClock } from "../../support/clock.ts";
import { type ScriptedMcp, startScriptedMcp, text } from "../../support/scripted-mcp.ts";
import {
  dispatch,
  ended,
  type Gate,
  gate,
  ledger,
  type Stage,
  startStage,
  unsettled,
  until,
} from "../support.ts";
import { reservations, spent } from "./support.ts";

setDefaultTimeout(60_000);

const QUARTER = 250_000;

let stage: Stage;
let upstream: ScriptedMcp;
/** Ends the first call, which has reserved the whole budget. */
let held: Gate;
let first: Promise<unknown>;
beforeEach(async () => {
  upstream = startScriptedMcp(["paid", "other"]);
  held = gate();
  upstream.answer(async ({ name }) => {
    if (name === "other") await held.opened;
    return text("done");
  });
  // The clock is stopped, so a waiting call checks again only when the first call ends.
  stage = await startStage({ clock: new FakeClock(), tiers: { 1: ["a"] }, more: 'tools: { "up.*": 0.25 }' });
  await addConnector(stage.gateway, "up", upstream.url);
  await stage.gateway.agent("clerk", { budget: { credits_per_day: 0.25 } });
  stage.upstream.script("a", ({ body }) =>
    body.messages.at(-1)?.role === "tool"
      ? { chunks: ["done"] }
      : { toolCalls: [{ name: "up__paid", arguments: {} }] },
  );
});
afterEach(async () => {
  held.open();
  await stage.stop();
  await upstream.close();
});

const agentClient = async () =>
  connect(stage.gateway, { token: await stage.gateway.token({ agent: "clerk" }) });
/** Waits until any call with room would have proceeded, because each of these requests passes through the store. */
const turns = async () => {
  for (let turn = 0; turn < 20; turn++) await stage.gateway.call("GET", "/v1/agents");
};
/** Changes the agent, and raises its budget so that the waiting call has room. */
async function change(fields: object): Promise<void> {
  const body = { budget: { credits_per_day: 10 }, ...fields };
  expect((await stage.gateway.call("PATCH", "/v1/agents/clerk", { body })).status).toBe(200);
}
const called = () => upstream.calls.map(({ name }) => name);
const intents = async () =>
  (await ledger(stage.gateway)).filter(({ action, phase }) => action === "tool.call" && phase === "intent");
/** The path for the decision on the call that is waiting for a person. */
async function asked(): Promise<string> {
  let path = "";
  await until(async () => {
    const [call] = (await stage.gateway.call("GET", "/v1/approvals")).body.data;
    if (call) path = `/v1/tasks/${call.task}/approvals/${call.call_id}`;
    return path !== "";
  });
  return path;
}
async function approve(path: string): Promise<void> {
  expect((await stage.gateway.call("POST", path, { body: { decision: "approve" } })).status).toBe(200);
}
/** Ends the call that reserved the budget. */
async function letIn(): Promise<void> {
  held.open();
  await first;
}
async function nothingOpen(): Promise<void> {
  expect(await reservations(stage.gateway)).toBe(0);
  expect(await spent(stage.gateway)).toBe(called().length * QUARTER);
  expect(await intents()).toHaveLength(called().length);
  expect(unsettled(await ledger(stage.gateway))).toEqual([]);
}
/** Makes the call that reserves the budget. It fails if its connector is removed before it ends. */
async function reserveAll(): Promise<void> {
  const client = await agentClient();
  first = client.post(request("tools/call", { name: "up__other", arguments: {} }));
  await until(() => called().length === 1);
}

describe("a task's call that waits for its budget", () => {
  let id: string;
  beforeEach(async () => {
    await reserveAll();
    id = await dispatch(stage.gateway, { agent: "clerk", tools: ["up.paid"] });
    await until(() => stage.upstream.requests.length === 1);
    await turns();
    expect(called()).toEqual(["other"]);
  });
  const toolsCalled = async () =>
    (await ended(stage.gateway, id)).tools_called.map(({ status }: { status: string }) => status);

  test("is denied if its agent may no longer use the tool", async () => {
    await change({ tools: ["up.other"] });
    await letIn();
    expect(await toolsCalled()).toEqual(["denied"]);
    expect((await ended(stage.gateway, id)).status).toBe("succeeded");
    expect(called()).toEqual(["other"]);
    await nothingOpen();
  });

  test("is denied if the connector was removed", async () => {
    await change({});
    expect((await stage.gateway.call("DELETE", "/v1/connectors/up")).status).toBe(204);
    await letIn();
    expect(await toolsCalled()).toEqual(["denied"]);
    expect(called()).toEqual(["other"]);
    await nothingOpen();
  });

  test("is presented for approval if it now needs one, and is made once approved", async () => {
    await change({ approvals: ["up.paid"] });
    await letIn();
    const path = await asked();
    expect(called()).toEqual(["other"]);
    expect(await reservations(stage.gateway)).toBe(0);
    await approve(path);
    expect(await toolsCalled()).toEqual(["succeeded"]);
    expect(called()).toEqual(["other", "paid"]);
    await nothingOpen();
  });

  test("is made if something else about its agent has changed", async () => {
    await change({ tools: ["up.*"], approvals: ["up.other"], description: "changed" });
    await letIn();
    expect(await toolsCalled()).toEqual(["succeeded"]);
    expect(called()).toEqual(["other", "paid"]);
    await nothingOpen();
  });
});

test("a call that was approved is made, even if it still needs approval after it waited for its budget", async () => {
  await change({ approvals: ["up.paid"] });
  const client = await agentClient();
  const call = client.call("up__paid");
  const path = await asked();
  await change({ budget: { credits_per_day: 0.25 } });
  await reserveAll();
  await approve(path);
  await turns();
  expect(called()).toEqual(["other"]);
  await change({});
  await letIn();
  expect((await call).isError).not.toBe(true);
  expect(called()).toEqual(["other", "paid"]);
  await nothingOpen();
});

describe("a client's call that waits for its budget", () => {
  let answer: Promise<{ isError?: boolean; refused?: string }>;
  beforeEach(async () => {
    await reserveAll();
    const client = await agentClient();
    answer = client
      .post(request("tools/call", { name: "up__paid", arguments: {} }))
      .then(({ last }) => last.result ?? { refused: (last.error ?? last).data?.code });
    await turns();
    expect(called()).toEqual(["other"]);
  });

  test("is refused if its agent may no longer use the tool", async () => {
    await change({ tools: ["up.other"] });
    await letIn();
    expect((await answer).refused).toBe("tool_forbidden");
    expect(called()).toEqual(["other"]);
    await nothingOpen();
  });

  test("is refused if the connector was removed", async () => {
    await change({});
    expect((await stage.gateway.call("DELETE", "/v1/connectors/up")).status).toBe(204);
    await letIn();
    expect((await answer).refused).toBe("unknown_tool");
    expect(called()).toEqual(["other"]);
    await nothingOpen();
  });

  test("is refused at once by a drain, which waits for the call in flight", async () => {
    let isDrained = false;
    const drained = stage.gateway.gateway.drain().then(() => {
      isDrained = true;
    });
    expect((await answer).refused).toBe("draining");
    expect(isDrained).toBe(false);
    await letIn();
    await drained;
    expect(called()).toEqual(["other"]);
    await nothingOpen();
  });

  test("is presented for approval if it now needs one, and is made once approved", async () => {
    await change({ approvals: ["up.paid"] });
    await letIn();
    const path = await asked();
    expect(called()).toEqual(["other"]);
    expect(await reservations(stage.gateway)).toBe(0);
    await approve(path);
    expect((await answer).isError).not.toBe(true);
    expect(called()).toEqual(["other", "paid"]);
    await nothingOpen();
  });

  test("is made if something else about its agent has changed", async () => {
    await change({ tools: ["up.*"], approvals: ["up.other"], description: "changed" });
    await letIn();
    expect((await answer).isError).not.toBe(true);
    expect(called()).toEqual(["other", "paid"]);
    await nothingOpen();
  });
});
