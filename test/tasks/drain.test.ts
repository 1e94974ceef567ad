/** An orderly stop: work in progress may end, nothing else is called, and the rest continues at the next start. */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { addConnector, connect, request } from "../mcp/support.ts";
import { FakeClock } from "../support/clock.ts";
import { allEvents, outline } from "../support/events.ts";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { type ScriptedMcp, startScriptedMcp, text } from "../support/scripted-mcp.ts";
import { dispatch, ended, gate, held, ledger, openEvents, unsettled, until, yamlOf } from "./support.ts";

setDefaultTimeout(60_000);

const clock = new FakeClock();
let upstream: FakeModel;
let mcp: ScriptedMcp;
let gateway: TestGateway;
let dataDir: string;
let yaml: string;

beforeEach(async () => {
  upstream = startFakeModel();
  mcp = startScriptedMcp(["slow"]);
  dataDir = mkdtempSync(join(tmpdir(), "gatehouse-drain-"));
  yaml = yamlOf(upstream.url, {
    tiers: { 1: ["a"] },
    limits: { concurrent_tasks: 2, enforcement: "enforced" },
    timeoutMs: 3_600_000,
    more: "drain_seconds: 7",
  });
  await start();
  await gateway.agent("plain", { approvals: [] });
  await addConnector(gateway, "files", mcp.url);
});
afterEach(async () => {
  await gateway.stop();
  await upstream.close();
  await mcp.close();
  rmSync(dataDir, { recursive: true, force: true });
});

async function start(): Promise<void> {
  gateway = await startGateway({ clock, yaml, dataDir });
}

/** Starts a drain, and reports whether it is over. */
function drain(): { readonly over: Promise<void>; isOver: boolean } {
  const draining = { over: gateway.gateway.drain(), isOver: false };
  void draining.over.then(() => {
    draining.isOver = true;
  });
  return draining;
}

async function restart(): Promise<void> {
  await gateway.stop();
  await start();
}

const body = { agent: "plain", prompt: "hi" };
const status = async (id: string) => (await gateway.call("GET", `/v1/tasks/${id}`)).body.status;
const ready = () => gateway.call("GET", "/readyz", { token: null });

test("an idle server is drained at once", async () => {
  expect((await ready()).status).toBe(200);
  await gateway.gateway.drain();
  const answer = await ready();
  expect([answer.status, answer.body]).toEqual([503, { status: "unavailable", failing: ["draining"] }]);
});

describe("while work in progress continues", () => {
  test("new work is refused over REST and MCP; reads, cancels and stops are served", async () => {
    const [first, second] = [held(), held()];
    upstream.script(
      "a",
      (request, call) =>
        [first, second]
          .map(({ script }) => (typeof script === "function" ? script : () => script))
          [call]?.(request, call) ?? { chunks: ["more"] },
    );
    const out = await dispatch(gateway, body);
    await first.asked;
    const other = await dispatch(gateway, body);
    await second.asked;
    const waiting = await dispatch(gateway, body);
    const client = await connect(gateway);
    const draining = drain();

    const refused = await gateway.call("POST", "/v1/tasks", { body });
    expect([refused.status, refused.body.code]).toEqual([503, "draining"]);
    expect(refused.headers.get("retry-after")).toMatch(/^\d+$/);
    const call = await client.refusal("tools/call", { name: "files__slow", arguments: {} });
    expect(call.data.code).toBe("draining");
    const agent = await client.refusal("tools/call", { name: "agents__plain", arguments: { prompt: "x" } });
    expect(agent.data.code).toBe("draining");
    expect(mcp.calls).toEqual([]);
    expect((await ready()).status).toBe(503);

    expect([await status(out), await status(waiting)]).toEqual(["running", "queued"]);
    expect((await gateway.call("POST", `/v1/tasks/${waiting}/cancel`)).body.status).toBe("cancelled");
    expect((await gateway.call("POST", `/v1/tasks/${other}/cancel`)).body.status).toBe("cancelled");
    expect(draining.isOver).toBe(false);
    first.open();
    await draining.over;
    expect(await status(out)).toBe("succeeded");
    expect(unsettled(await ledger(gateway))).toEqual([]);
  });

  test("a task ends if its answer was the last, and its stream reports it", async () => {
    const hold = held({ chunks: ["the ", "answer"] });
    upstream.script("a", hold.script);
    const id = await dispatch(gateway, body);
    const events = openEvents(gateway, id).then(allEvents);
    await hold.asked;
    const { over } = drain();
    hold.open();
    await over;
    expect((await events).at(-1)).toMatchObject({ event: "task.finished", data: { output: "the answer" } });
  });

  test("a task that would continue is requeued after an answer, and after each tool call", async () => {
    const slow = gate();
    mcp.answer(async () => {
      await slow.opened;
      return text("found");
    });
    upstream.script("a", (_request, call) =>
      call === 0
        ? {
            chunks: ["Looking. "],
            toolCalls: [
              { name: "files__slow", arguments: { n: 1 } },
              { name: "files__slow", arguments: { n: 2 } },
            ],
          }
        : { chunks: ["done"] },
    );
    const id = await dispatch(gateway, { ...body, tools: ["files.slow"] });
    const reading = openEvents(gateway, id).then(allEvents);
    await until(() => mcp.calls.length === 1);
    const { over } = drain();
    slow.open();
    await over;
    expect([mcp.calls.length, upstream.requests.length, await status(id)]).toEqual([1, 1, "queued"]);
    await restart();
    // The first call had its result and the second was not made. No stream reports the end of the task.
    const seen = await reading;
    expect(outline(seen)).toEqual([
      "task.created",
      "task.started",
      "output.delta",
      "tool.call",
      "tool.result",
      "tool.call",
    ]);
    expect(await ended(gateway, id)).toMatchObject({
      status: "succeeded",
      output: "done",
      tools_called: [{ status: "succeeded" }, { status: "succeeded" }],
    });
    expect(mcp.calls.map(({ input }) => input)).toEqual([{ n: 1 }, { n: 2 }]);
    // A client that resumes receives the rest, each event once.
    const after = String(seen.at(-1)?.id ?? 0);
    const rest = await allEvents(await openEvents(gateway, id, { "last-event-id": after }));
    const ids = [...seen, ...rest].map((event) => Number(event.id));
    expect(ids).toEqual([...new Set(ids)].toSorted((a, b) => a - b));
    expect(rest.at(-1)?.event).toBe("task.finished");
    expect(unsettled(await ledger(gateway))).toEqual([]);
  });

  test("cancelling or stopping a requeued task ends it, before and after the next start", async () => {
    const [slow, hold] = [gate(), held()];
    mcp.answer(async () => {
      await slow.opened;
      return text("found");
    });
    upstream.script("a", ({ body: asked }, call) => {
      if (call === 3) return typeof hold.script === "function" ? hold.script({} as never, 0) : hold.script;
      return asked.messages.at(-1)?.role === "tool"
        ? { chunks: ["done"] }
        : { toolCalls: [{ name: "files__slow", arguments: {} }] };
    });
    await gateway.call("PATCH", "/v1/workspace", { body: { limits: { concurrent_tasks: 10 } } });
    const ids: string[] = [];
    for (let n = 0; n < 3; n++) ids.push(await dispatch(gateway, { ...body, tools: ["files.slow"] }));
    await until(() => mcp.calls.length === 3);
    await gateway.agent("other");
    const out = await dispatch(gateway, { agent: "other", prompt: "hi" });
    await hold.asked;
    const draining = drain();
    slow.open();
    for (const id of ids) await until(async () => (await status(id)) === "queued");
    expect(draining.isOver).toBe(false);

    const [cancelled = "", ...stopped] = ids;
    const answer = await gateway.call("POST", `/v1/tasks/${cancelled}/cancel`);
    expect([answer.status, answer.body.status]).toEqual([200, "cancelled"]);
    expect((await gateway.call("POST", `/v1/tasks/${cancelled}/cancel`)).body.code).toBe("task_finished");
    expect((await gateway.call("POST", "/v1/agents/plain/stop")).status).toBe(200);
    for (const id of stopped) expect(await status(id)).toBe("cancelled");
    expect((await gateway.call("POST", "/v1/agents/plain/resume")).status).toBe(200);
    hold.open();
    await draining.over;
    await restart();
    for (const id of ids) expect(await status(id)).toBe("cancelled");
    expect((await ended(gateway, out)).status).toBe("succeeded");
    expect(unsettled(await ledger(gateway))).toEqual([]);
  });

  test("a task that waits at its provider's request does not delay the drain", async () => {
    upstream.script("a", (_request, call) =>
      call === 0 ? { status: 429, headers: { "retry-after": "9" } } : { chunks: ["done"] },
    );
    const id = await dispatch(gateway, body);
    await until(() => upstream.requests.length === 1);
    await drain().over;
    expect(await status(id)).toBe("queued");
    await restart();
    expect(await ended(gateway, id)).toMatchObject({ status: "succeeded", output: "done" });
    expect(unsettled(await ledger(gateway))).toEqual([]);
  });

  test("a client's own call is answered before the end", async () => {
    const slow = gate();
    mcp.answer(async () => {
      await slow.opened;
      return text("found");
    });
    const client = await connect(gateway);
    const answer = client.post(request("tools/call", { name: "files__slow", arguments: {} }));
    await until(() => mcp.calls.length === 1);
    const draining = drain();
    expect((await ready()).status).toBe(503);
    expect(draining.isOver).toBe(false);
    slow.open();
    await draining.over;
    expect((await answer).last.result.content).toEqual([{ type: "text", text: "found" }]);
  });
});

test("work that exceeds drain_seconds is interrupted, and its progress is saved", async () => {
  const hold = held({ chunks: ["half of "] });
  upstream.script("a", hold.script);
  const id = await dispatch(gateway, body);
  await hold.asked;
  const draining = drain();
  clock.advance(6_999);
  expect((await ready()).status).toBe(503);
  expect(draining.isOver).toBe(false);
  clock.advance(1);
  await draining.over;
  expect(await status(id)).toBe("running");
  upstream.script("a", { chunks: ["all of it"] });
  await restart();
  expect(await ended(gateway, id)).toMatchObject({ status: "succeeded", output: "all of it" });
  expect(unsettled(await ledger(gateway))).toEqual([]);
});

test("a task accepted at the moment of the drain is not lost", async () => {
  const accepted = Promise.all(Array.from({ length: 50 }, () => gateway.call("POST", "/v1/tasks", { body })));
  const { over } = drain();
  const answers = await accepted;
  await over;
  const taken = answers.filter(({ status }) => status === 202).map((answer) => answer.body.id as string);
  for (const answer of answers) expect([202, 503]).toContain(answer.status);
  await restart();
  for (const id of taken) expect((await ended(gateway, id)).status).toBe("succeeded");
  expect((await gateway.call("GET", "/v1/tasks?limit=200")).body.data.length).toBe(taken.length);
});

test("decisions made during a drain are carried out by the next start", async () => {
  await gateway.agent("careful", { approvals: ["*"] });
  upstream.script("a", (_request, call) =>
    call === 0 ? { toolCalls: [{ name: "files__slow", arguments: {} }] } : { chunks: ["done"] },
  );
  const id = await dispatch(gateway, { agent: "careful", prompt: "hi", tools: ["files.slow"] });
  await until(async () => (await status(id)) === "awaiting_approval");
  const { over } = drain();
  await over;
  const [{ call_id: callId }] = (await gateway.call("GET", "/v1/approvals")).body.data;
  const decided = await gateway.call("POST", `/v1/tasks/${id}/approvals/${callId}`, {
    body: { decision: "approve" },
  });
  expect(decided.status).toBe(200);
  expect(mcp.calls).toEqual([]);
  await restart();
  expect((await ended(gateway, id)).status).toBe("succeeded");
  expect(mcp.calls.length).toBe(1);
});
