/** Background responses, and calls outside of tasks, of gateways that share a store. */
import { afterEach, describe, expect, test } from "bun:test";
import { eventsOf, responseOf, textItem } from "../dialects/responses-support.ts";
import { addConnector } from "../mcp/support.ts";
import { type FakeResponses, startFakeResponses } from "../support/fake-responses.ts";
import type { TestGateway } from "../support/gateway.ts";
import { startNodes, type TestNodes } from "../support/nodes.ts";
import { missingPostgres } from "../support/postgres/database.ts";
import { startScriptedMcp } from "../support/scripted-mcp.ts";
import { until } from "../support/until.ts";
import { gate, ledger, unsettled } from "../tasks/support.ts";

const opened: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

async function startNode(yaml: string): Promise<{ nodes: TestNodes; first: TestGateway }> {
  const nodes = await startNodes(1, { yaml });
  opened.push(() => nodes.stop());
  const [first] = nodes.nodes;
  if (!first) throw new Error("no node was started");
  return { nodes, first };
}

async function addNode(nodes: TestNodes): Promise<TestGateway> {
  const second = await nodes.add();
  await until(async () => (await nodes.database.query("SELECT 1 FROM nodes")).length === 2);
  return second;
}

/** Gives the first node up, as the others do when they have not seen it for long enough. */
function giveUp(nodes: TestNodes) {
  return nodes.database.query(
    "DELETE FROM nodes WHERE id = (SELECT id FROM nodes ORDER BY since, id LIMIT 1)",
  );
}

describe.skipIf(missingPostgres !== undefined)("a background response of another node", () => {
  async function start() {
    const upstream = startFakeResponses("sk-upstream");
    opened.push(() => upstream.close());
    const { nodes, first } = await startNode(`
providers:
  up: { kind: openai, base_url: "${upstream.url}", api_key: sk-upstream }
tiers:
  1: { models: [up/first] }
limits: { requests_per_minute: 1000000 }
`);
    await first.agent("clerk");
    const token = await first.token({ agent: "clerk" });
    return { upstream, nodes, first, second: await addNode(nodes), token };
  }

  function answer(upstream: FakeResponses, opened?: Promise<unknown>) {
    const events = eventsOf(responseOf([textItem("Good evening")]));
    upstream.script("first", { events, ...(opened ? { gate: opened } : {}) });
  }

  async function dispatch(node: TestGateway, token: string): Promise<string> {
    const body = { model: "up/first", input: "Good morning", background: true };
    const { status, body: sent } = await node.call("POST", "/v1/responses", { token, body });
    expect([status, sent.status]).toEqual([200, "queued"]);
    return sent.id;
  }

  async function ended(node: TestGateway, id: string, token: string) {
    const read = async () => (await node.call("GET", `/v1/responses/${id}`, { token })).body;
    await until(async () => !["queued", "in_progress"].includes((await read()).status));
    return read();
  }

  test("is read and cancelled; its upstream request is aborted", async () => {
    const { upstream, first, second, token } = await start();
    const held = gate();
    answer(upstream, held.opened);
    const id = await dispatch(first, token);
    await until(() => upstream.requests.length === 1);
    expect((await second.call("GET", `/v1/responses/${id}`, { token })).body).toMatchObject({ id });
    const cancelled = await second.call("POST", `/v1/responses/${id}/cancel`, { token });
    expect(cancelled).toMatchObject({ status: 200, body: { id, status: "cancelled" } });
    await until(() => upstream.requests[0]?.aborted === true);
    expect(await ended(first, id, token)).toMatchObject({ id, status: "cancelled" });
    held.open();
    await until(async () => unsettled(await ledger(first)).length === 0);
  });

  test("is continued when its node is given up, and ends once", async () => {
    const { upstream, nodes, first, second, token } = await start();
    const held = gate();
    answer(upstream, held.opened);
    const id = await dispatch(first, token);
    await until(() => upstream.requests.length === 1);
    answer(upstream);
    await giveUp(nodes);
    expect(await ended(second, id, token)).toMatchObject({ id, status: "completed" });
    held.open();
    await until(async () => unsettled(await ledger(first)).length === 0);
    const ends = (await ledger(second)).filter(
      ({ action, phase }) => action === "response.dispatch" && phase === "outcome",
    );
    expect(ends).toHaveLength(1);
    expect(await nodes.database.query("SELECT 1 FROM open_calls")).toEqual([]);
    expect(await nodes.database.query("SELECT 1 FROM task_claims")).toEqual([]);
  });

  test("is continued when its node drains", async () => {
    const { upstream, first, second, token } = await start();
    answer(upstream);
    const id = await dispatch(first, token);
    await first.gateway.drain();
    expect(await ended(second, id, token)).toMatchObject({ id, status: "completed" });
    await until(async () => unsettled(await ledger(second)).length === 0);
  });
});

describe.skipIf(missingPostgres !== undefined)("a call in flight at one node", () => {
  async function start() {
    const held = gate();
    const tools = startScriptedMcp([{ name: "send", inputSchema: { type: "object" } }]);
    opened.push(() => tools.close());
    tools.answer(async () => {
      await held.opened;
      return { content: [{ type: "text", text: "sent" }] };
    });
    const { nodes, first } = await startNode("limits: { requests_per_minute: 1000000 }\n");
    await addConnector(first, "up", tools.url);
    const called = first.call("POST", "/v1/tools/up.send/call", { body: { arguments: {} } });
    await until(() => tools.calls.length === 1);
    return { held, nodes, first, called };
  }

  const outcomes = async (node: TestGateway) =>
    (await ledger(node)).filter(({ action, phase }) => action === "tool.call" && phase === "outcome");

  test("is not reported as lost when another starts", async () => {
    const { held, nodes, called } = await start();
    const second = await addNode(nodes);
    held.open();
    expect((await called).status).toBe(200);
    expect(await outcomes(second)).toMatchObject([{ outcome: "succeeded" }]);
    expect(await nodes.database.query("SELECT 1 FROM open_calls")).toEqual([]);
  });

  test("is reported once when that node is given up, which writes no outcome for it", async () => {
    const { held, nodes, first, called } = await start();
    const second = await addNode(nodes);
    await giveUp(nodes);
    await until(async () => (await outcomes(second)).length === 1);
    held.open();
    expect((await called).status).toBe(503);
    await until(async () => (await first.call("GET", "/v1/agents")).status === 200);
    expect(await outcomes(second)).toMatchObject([{ outcome: "failed", code: "unknown" }]);
    expect(unsettled(await ledger(second))).toEqual([]);
  });

  test("is reported by that node itself if no other is left", async () => {
    const { held, nodes, first, called } = await start();
    await giveUp(nodes);
    await until(async () => (await first.call("GET", "/v1/agents")).status === 200);
    await until(async () => (await outcomes(first)).length === 1);
    held.open();
    expect((await called).status).toBe(503);
    expect(await outcomes(first)).toMatchObject([{ outcome: "failed", code: "unknown" }]);
    expect(unsettled(await ledger(first))).toEqual([]);
    expect(await nodes.database.query("SELECT 1 FROM open_calls")).toEqual([]);
  });
});
