/** Tasks of gateways that share a store: whoever accepted one, each node answers for it, and only one of them runs it. */
import { afterEach, describe, expect, test } from "bun:test";
import pg from "pg";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import { addConnector } from "../mcp/support.ts";
import { allEvents } from "../support/events.ts";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import type { TestGateway } from "../support/gateway.ts";
import { startNodes, type TestNodes } from "../support/nodes.ts";
import { missingPostgres } from "../support/postgres/database.ts";
import { type ScriptedMcp, startScriptedMcp } from "../support/scripted-mcp.ts";
import { until } from "../support/until.ts";
import { dispatch, held, ledger, openEvents, unsettled, yamlOf } from "../tasks/support.ts";

/** A clock whose timers stop while it is frozen, as if the node no longer reported that it is alive. */
class FreezingClock implements Clock {
  isFrozen = false;
  now = () => systemClock.now();
  monotonic = () => systemClock.monotonic();

  after(ms: number, task: () => void): () => void {
    const run = () => {
      if (this.isFrozen) setTimeout(run, 20);
      else task();
    };
    return systemClock.after(ms, run);
  }
}

interface Pair {
  readonly first: TestGateway;
  readonly second: TestGateway;
  readonly upstream: FakeModel;
  readonly tools: ScriptedMcp;
  readonly nodes: TestNodes;
  /** Of the first node. */
  readonly clock: FreezingClock;
}

const SEND = { name: "send", inputSchema: { type: "object", additionalProperties: true } };
const opened: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

/** Two nodes with the agents `plain` and `careful`, whose calls need approval, and the tool `up.send`. */
async function startPair(limits: Record<string, number | string> = {}): Promise<Pair> {
  const upstream = startFakeModel();
  opened.push(() => upstream.close());
  const tools = startScriptedMcp([SEND]);
  opened.push(() => tools.close());
  const clock = new FreezingClock();
  const yaml = yamlOf(upstream.url, { tiers: { 1: ["a"] }, limits });
  const nodes = await startNodes(1, { yaml, clock });
  opened.push(() => nodes.stop());
  const [first] = nodes.nodes;
  if (!first) throw new Error("no node was started");
  await addConnector(first, "up", tools.url);
  await first.agent("plain");
  await first.agent("careful", { approvals: ["up.*"] });
  const second = await nodes.add({ clock: new FreezingClock() });
  await until(async () => (await nodes.database.query("SELECT 1 FROM nodes")).length === 2);
  return { first, second, upstream, tools, nodes, clock };
}

const taskOf = async (node: TestGateway, id: string) => (await node.call("GET", `/v1/tasks/${id}`)).body;

async function endedOn(node: TestGateway, id: string) {
  const isEnded = async () => /succeeded|failed|cancelled/.test((await taskOf(node, id)).status);
  await until(isEnded);
  return taskOf(node, id);
}

/** Gives the first node up, as the others do when they have not seen it for long enough. */
async function giveUp({ nodes }: Pair): Promise<void> {
  await nodes.database.query(
    "DELETE FROM nodes WHERE id = (SELECT id FROM nodes ORDER BY since, id LIMIT 1)",
  );
}

const calls = ({ tools }: Pair) => tools.calls.length;

/** Answers the first request as `held` does, and the others with `then`. */
function firstHeld(upstream: FakeModel, { script }: ReturnType<typeof held>, then: string): void {
  upstream.script("a", (request, index) => {
    if (index > 0 || typeof script !== "function") return { chunks: [then] };
    return script(request, index);
  });
}

/** A model that calls `up.send` once and then ends. */
function callsOnce(upstream: FakeModel): void {
  upstream.script("a", ({ body }) => {
    const last = (body as unknown as { messages: { role: string }[] }).messages.at(-1);
    if (last?.role === "tool") return { chunks: ["done"] };
    return { chunks: ["let me see"], toolCalls: [{ name: "up__send", arguments: {} }] };
  });
}

describe.skipIf(missingPostgres !== undefined)("a task of another node", () => {
  test("is read, listed and cancelled; its upstream request is aborted", async () => {
    const pair = await startPair();
    const { first, second, upstream } = pair;
    const model = held();
    upstream.script("a", model.script);
    const id = await dispatch(first, { agent: "plain" });
    await model.asked;
    expect(await taskOf(second, id)).toMatchObject({ id, status: "running" });
    expect((await second.call("GET", "/v1/tasks")).body.data).toMatchObject([{ id }]);
    const cancelled = await second.call("POST", `/v1/tasks/${id}/cancel`);
    expect(cancelled).toMatchObject({ status: 200, body: { id, status: "cancelled" } });
    await until(() => upstream.requests[0]?.aborted === true);
    expect(await taskOf(first, id)).toMatchObject({ id, status: "cancelled" });
    const again = await first.call("POST", `/v1/tasks/${id}/cancel`);
    expect(again).toMatchObject({ status: 409, body: { code: "task_finished" } });
    const entries = await ledger(second);
    expect(unsettled(entries)).toEqual([]);
    expect(
      entries.filter(({ action, outcome }) => action === "task.cancel" && outcome === "succeeded"),
    ).toHaveLength(1);
    expect((await allEvents(await openEvents(second, id))).at(-1)?.event).toBe("task.finished");
  });

  test("is cancelled in the queue and while it waits for a person", async () => {
    const { first, second, upstream, tools, nodes } = await startPair({ running_tasks_per_node: 1 });
    callsOnce(upstream);
    const waiting = await dispatch(first, { agent: "careful", tools: ["up.send"] });
    await until(async () => (await taskOf(second, waiting)).status === "awaiting_approval");
    const model = held();
    upstream.script("a", model.script);
    const running = await dispatch(first, { agent: "plain" });
    await model.asked;
    // Only the first node may run it: it is cancelled before the second could take it.
    const queued = await dispatch(first, { agent: "plain" });
    for (const id of [queued, waiting]) {
      const answer = await second.call("POST", `/v1/tasks/${id}/cancel`);
      expect(answer).toMatchObject({ status: 200, body: { id, status: "cancelled" } });
    }
    model.open();
    expect(await endedOn(first, running)).toMatchObject({ status: "succeeded" });
    expect(tools.calls).toEqual([]);
    expect(await nodes.database.query("SELECT 1 FROM task_claims")).toEqual([]);
    expect(unsettled(await ledger(first))).toEqual([]);
  });

  test("goes on there when a person decides here, and its readers learn of it", async () => {
    const pair = await startPair();
    const { first, second, upstream } = pair;
    callsOnce(upstream);
    const id = await dispatch(first, { agent: "careful", tools: ["up.send"] });
    await until(async () => (await taskOf(second, id)).status === "awaiting_approval");
    const [asked] = (await second.call("GET", "/v1/approvals")).body.data;
    const body = { decision: "approve", arguments_hash: asked.arguments_hash };
    const decided = await second.call("POST", `/v1/tasks/${id}/approvals/${asked.call_id}`, { body });
    expect(decided).toMatchObject({ status: 200, body: { status: "approved" } });
    expect(await endedOn(second, id)).toMatchObject({ status: "succeeded", output: "done" });
    expect(calls(pair)).toBe(1);
    const events = (await allEvents(await openEvents(second, id))).map(({ event }) => event);
    expect(events).toContain("approval.decided");
    expect(events.at(-1)).toBe("task.finished");
    expect(unsettled(await ledger(first))).toEqual([]);
  });

  test("is resumed once for a decision, even if its next call waits for another by then", async () => {
    const pair = await startPair();
    const { first, second, upstream, nodes } = pair;
    const { database } = nodes;
    upstream.script("a", (_request, index) =>
      index < 2 ? { toolCalls: [{ name: "up__send", arguments: { index } }] } : { chunks: ["done"] },
    );
    const id = await dispatch(first, { agent: "careful", tools: ["up.send"] });
    const approve = async () => {
      await until(async () => (await taskOf(second, id)).status === "awaiting_approval");
      const [asked] = (await second.call("GET", "/v1/approvals")).body.data;
      const body = { decision: "approve", arguments_hash: asked.arguments_hash };
      await second.call("POST", `/v1/tasks/${id}/approvals/${asked.call_id}`, { body });
    };
    // Holds the run that continues before its first write: until then, the store has its task in the queue.
    const gate = new pg.Client({ connectionString: database.superuserUrl });
    await gate.connect();
    opened.push(() => gate.end());
    await until(async () => (await taskOf(second, id)).status === "awaiting_approval");
    await gate.query("BEGIN");
    await gate.query("LOCK TABLE task_answers");
    await approve();
    await until(async () => {
      const waiting = await database.query(
        "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'task_answers'::regclass",
      );
      return waiting.length > 0;
    });
    // The node looks into the store as well, in case it has missed the message.
    const message = { from: "another", messages: [["tasks.released", { to: null }]] };
    await database.query("SELECT pg_notify('gatehouse', $1)", [JSON.stringify(message)]);
    await until(async () => {
      const [claim] = await database.query<{ is_due: boolean }>("SELECT is_due FROM task_claims");
      return claim?.is_due === false;
    });
    await Bun.sleep(200);
    await gate.query("COMMIT");
    await approve();
    expect(await endedOn(second, id)).toMatchObject({ status: "succeeded", output: "done" });
    expect(calls(pair)).toBe(2);
    expect(unsettled(await ledger(first))).toEqual([]);
  });

  test("ends with a stop of its agent here, as does its upstream request", async () => {
    const { first, second, upstream } = await startPair();
    const model = held();
    upstream.script("a", model.script);
    const id = await dispatch(first, { agent: "plain" });
    await model.asked;
    expect(await second.call("POST", "/v1/agents/plain/stop")).toMatchObject({ status: 200 });
    await until(() => upstream.requests[0]?.aborted === true);
    const task = await endedOn(second, id);
    expect(task).toMatchObject({ status: "cancelled", error: { code: "agent_stopped" } });
    // The ends of the tasks of other nodes must be written first.
    expect(await second.call("POST", "/v1/agents/plain/resume")).toMatchObject({ status: 200 });
  });

  test("goes on if what was never stopped is resumed, and no resume waits for it", async () => {
    const { first, second, upstream } = await startPair();
    const model = held();
    upstream.script("a", model.script);
    const id = await dispatch(first, { agent: "plain" });
    await model.asked;
    for (const path of ["/v1/agents/plain/resume", "/v1/workspace/resume"])
      for (const node of [first, second])
        expect(await node.call("POST", path)).toMatchObject({ status: 200 });
    model.open();
    await until(async () => (await second.call("GET", `/v1/tasks/${id}`)).body.status === "succeeded");
  });

  test("is not ended by the message of a stop that the store does not have", async () => {
    const { first, second, upstream, nodes } = await startPair();
    const model = held();
    upstream.script("a", model.script);
    const id = await dispatch(first, { agent: "plain" });
    await model.asked;
    const [agent] = await nodes.database.query<{ id: string }>("SELECT id FROM agents WHERE name = 'plain'");
    for (const stopped of [Number(agent?.id), null, "plain"]) {
      const message = { from: "another", messages: [["tasks.stopped", { workspace: 1, agent: stopped }]] };
      await nodes.database.query("SELECT pg_notify('gatehouse', $1)", [JSON.stringify(message)]);
    }
    // Sent after them, and seen by the same node.
    await second.call("PATCH", "/v1/agents/plain", { body: { description: "changed" } });
    await until(async () => (await first.call("GET", "/v1/agents/plain")).body.description === "changed");
    await Bun.sleep(100);
    expect(upstream.requests[0]?.aborted).toBe(false);
    model.open();
    expect(await endedOn(second, id)).toMatchObject({ status: "succeeded" });
  });

  test("ends with a stop of the workspace here", async () => {
    const { first, second, upstream } = await startPair();
    const model = held();
    upstream.script("a", model.script);
    const id = await dispatch(first, { agent: "plain" });
    await model.asked;
    expect(await second.call("POST", "/v1/workspace/stop")).toMatchObject({ status: 200 });
    await until(() => upstream.requests[0]?.aborted === true);
    expect(await endedOn(second, id)).toMatchObject({
      status: "cancelled",
      error: { code: "agent_stopped" },
    });
  });
});

describe.skipIf(missingPostgres !== undefined)("a node that was given up", () => {
  test("writes nothing more for a task that another node has taken over", async () => {
    const pair = await startPair();
    const { first, second, upstream, clock } = pair;
    const stale = held({ chunks: ["calls a tool"], toolCalls: [{ name: "up__send", arguments: {} }] });
    firstHeld(upstream, stale, "done");
    const id = await dispatch(first, { agent: "plain", tools: ["up.send"] });
    await stale.asked;
    clock.isFrozen = true;
    await giveUp(pair);
    expect(await endedOn(second, id)).toMatchObject({ status: "succeeded", output: "done" });
    // The answer arrives at the node that no longer has the task.
    stale.open();
    await Bun.sleep(200);
    clock.isFrozen = false;
    await until(async () => (await first.call("GET", "/v1/agents")).status === 200);
    expect(calls(pair)).toBe(0);
    const entries = await ledger(second);
    expect(unsettled(entries)).toEqual([]);
    const outcomes = entries.filter(({ action, phase }) => action === "model.call" && phase === "outcome");
    expect(outcomes.map(({ code }) => code ?? null)).toEqual(["interrupted", null]);
  });

  test("begins no call, and no tool call is made twice", async () => {
    const pair = await startPair();
    const { first, second, upstream, clock } = pair;
    const late = held({ chunks: ["done"] });
    upstream.script("a", (request, index) => {
      const last = (request.body as unknown as { messages: { role: string }[] }).messages.at(-1);
      if (last?.role !== "tool") return { chunks: ["x"], toolCalls: [{ name: "up__send", arguments: {} }] };
      if (index !== 1 || typeof late.script !== "function") return { chunks: ["done"] };
      return late.script(request, index);
    });
    const id = await dispatch(first, { agent: "plain", tools: ["up.send"] });
    await late.asked;
    clock.isFrozen = true;
    await giveUp(pair);
    const task = await endedOn(second, id);
    expect(task).toMatchObject({ status: "succeeded", output: "done" });
    late.open();
    await Bun.sleep(200);
    clock.isFrozen = false;
    expect(calls(pair)).toBe(1);
    expect(unsettled(await ledger(first))).toEqual([]);
    // It continues under another id.
    expect(await endedOn(second, await dispatch(first, { agent: "plain" }))).toMatchObject({
      status: "succeeded",
    });
  });

  test("forgets its tasks and cuts their requests off as soon as it learns of it", async () => {
    const pair = await startPair();
    const { first, second, upstream } = pair;
    const model = held();
    firstHeld(upstream, model, "again");
    const id = await dispatch(first, { agent: "plain" });
    await model.asked;
    await giveUp(pair);
    await until(() => upstream.requests[0]?.aborted === true);
    expect(await endedOn(second, id)).toMatchObject({ status: "succeeded", output: "again" });
    expect(unsettled(await ledger(second))).toEqual([]);
  });
});

describe.skipIf(missingPostgres !== undefined)("a node that drains", () => {
  test("leaves its queued and waiting tasks to another node at once", async () => {
    const pair = await startPair({ running_tasks_per_node: 1 });
    const { first, second, upstream } = pair;
    callsOnce(upstream);
    const waiting = await dispatch(first, { agent: "careful", tools: ["up.send"] });
    await until(async () => (await taskOf(second, waiting)).status === "awaiting_approval");
    const model = held();
    firstHeld(upstream, model, "there");
    const running = await dispatch(first, { agent: "plain" });
    await model.asked;
    const queued = await dispatch(first, { agent: "plain" });
    const drained = first.gateway.drain();
    expect(await endedOn(second, queued)).toMatchObject({ status: "succeeded", output: "there" });
    model.open();
    await drained;
    expect(await endedOn(second, running)).toMatchObject({ status: "succeeded" });
    callsOnce(upstream);
    const [asked] = (await second.call("GET", "/v1/approvals")).body.data;
    const body = { decision: "approve", arguments_hash: asked.arguments_hash };
    await second.call("POST", `/v1/tasks/${waiting}/approvals/${asked.call_id}`, { body });
    expect(await endedOn(second, waiting)).toMatchObject({ status: "succeeded", output: "done" });
    expect(calls(pair)).toBe(1);
    expect(unsettled(await ledger(second))).toEqual([]);
  });
});
