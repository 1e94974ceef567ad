import { afterEach, beforeEach, expect, test } from "bun:test";
import { allEvents } from "../support/events.ts";
import { dispatch, ended, ledger, openEvents, type Stage, startStage } from "./support.ts";

let stage: Stage;

beforeEach(async () => {
  stage = await startStage({ tiers: { 1: ["a"] } });
  await stage.gateway.agent("careful", { approvals: ["time.*"] });
  stage.upstream.script("a", (_request: unknown, call: number) =>
    call === 0
      ? { chunks: ["let me look"], toolCalls: [{ name: "time__now", arguments: {} }] }
      : { chunks: ["done"] },
  );
});
afterEach(() => stage.stop());

const pending = async () => (await stage.gateway.call("GET", "/v1/approvals")).body.data;

async function asked(): Promise<{ task: string; call_id: string; arguments_hash: string }> {
  for (let turn = 0; turn < 500; turn++) {
    const [first] = await pending();
    if (first) return first;
    await Bun.sleep(2);
  }
  throw new Error("nothing was asked");
}

test("an approved call is made, and the task ends with the answer", async () => {
  const id = await dispatch(stage.gateway, { agent: "careful", tools: ["time.now"] });
  const approval = await asked();
  expect(approval).toMatchObject({ task: id, agent: "careful", tool: "time.now", arguments: {} });
  expect((await stage.gateway.call("GET", `/v1/tasks/${id}`)).body.status).toBe("awaiting_approval");
  const decided = await stage.gateway.call("POST", `/v1/tasks/${id}/approvals/${approval.call_id}`, {
    body: { decision: "approve", reason: "looks fine", arguments_hash: approval.arguments_hash },
  });
  expect(decided).toMatchObject({ status: 200, body: { status: "approved" } });
  const task = await ended(stage.gateway, id);
  expect(task).toMatchObject({ status: "succeeded", output: "done" });
  expect(task.tools_called).toMatchObject([{ tool: "time.now", status: "succeeded" }]);
  expect(await pending()).toEqual([]);
  const events = await allEvents(await openEvents(stage.gateway, id));
  expect(events.map(({ event }) => event)).toEqual([
    "task.created",
    "task.started",
    "output.delta",
    "tool.call",
    "approval.required",
    "approval.decided",
    "tool.result",
    "output.delta",
    "task.finished",
  ]);
  const entries = await ledger(stage.gateway);
  const oversight = entries.find(({ action }) => action === "oversight.approve");
  const shown = entries.find(({ action, outcome }) => action === "tool.call" && outcome === "pending");
  expect(oversight).toMatchObject({
    oversight: {
      decision: "approve",
      target_seq: shown?.seq,
      arguments_hash: approval.arguments_hash,
      reason_hash: expect.any(String),
    },
  });
});

test("a denied call is not made, and the model is told why", async () => {
  const id = await dispatch(stage.gateway, { agent: "careful", tools: ["time.now"] });
  const approval = await asked();
  const path = `/v1/tasks/${id}/approvals/${approval.call_id}`;
  await stage.gateway.call("POST", path, { body: { decision: "deny", reason: "not today" } });
  const task = await ended(stage.gateway, id);
  expect(task).toMatchObject({ status: "succeeded", output: "done" });
  expect(task.tools_called).toMatchObject([{ tool: "time.now", status: "denied" }]);
  expect(JSON.stringify(stage.upstream.requests.at(-1)?.body)).toContain("not today");
  const again = await stage.gateway.call("POST", path, { body: { decision: "approve" } });
  expect([again.status, again.body.code]).toEqual([409, "approval_decided"]);
});

test("a waiting task is cancelled at once", async () => {
  const id = await dispatch(stage.gateway, { agent: "careful", tools: ["time.now"] });
  const approval = await asked();
  const cancelled = await stage.gateway.call("POST", `/v1/tasks/${id}/cancel`);
  expect(cancelled).toMatchObject({ status: 200, body: { status: "cancelled" } });
  const path = `/v1/tasks/${id}/approvals/${approval.call_id}`;
  expect((await stage.gateway.call("POST", path, { body: { decision: "approve" } })).status).toBe(409);
});
