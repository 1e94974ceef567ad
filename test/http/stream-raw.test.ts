import { afterAll, beforeAll, expect, test } from "bun:test";
import { FakeClock } from "../support/clock.ts";
import { dispatch, ended, held, ledger, type Stage, startStage } from "../tasks/support.ts";
import { rawRequest } from "./stream-support.ts";

const clock = new FakeClock();
let stage: Stage;

beforeAll(async () => {
  const limits = { concurrent_tasks: 1, enforcement: "enforced" };
  stage = await startStage({ clock, timeoutMs: 3_600_000, tiers: { 1: ["a"] }, limits });
  await stage.gateway.agent("plain");
});
afterAll(() => stage.stop());

const headersOf = (head: string) => {
  const [status = "", ...lines] = head.split("\r\n");
  return { status, headers: new Headers(lines.map((line) => line.split(": ", 2) as [string, string])) };
};
const dispatchBody = JSON.stringify({ agent: "plain", prompt: "hi" });

test("a queued task's stream opens at once: headers, a comment and task.created", async () => {
  const { gateway, upstream } = stage;
  const hold = held();
  upstream.script("a", hold.script);
  const running = await dispatch(gateway, { agent: "plain" });
  await hold.asked;

  const stream = rawRequest(gateway, { method: "POST", path: "/v1/tasks?stream=true", body: dispatchBody });
  const { status, headers } = headersOf(await stream.head());
  expect(status).toBe("HTTP/1.1 200 OK");
  expect(headers.get("content-type")).toBe("text/event-stream");
  expect(headers.get("cache-control")).toBe("no-store");
  expect(headers.get("ratelimit")).toBeNull();
  const id = headers.get("gatehouse-task-id") ?? "";
  expect(headers.get("location")).toBe(`/v1/tasks/${id}`);
  const opened = `: open\n\nid: 1\nevent: task.created\ndata: {"id":"${id}","status":"queued"}\n\n`;
  await stream.saw("task.created");
  expect(stream.body()).toBe(opened);

  const events = rawRequest(gateway, { path: `/v1/tasks/${id}/events` });
  await events.saw("task.created");
  expect(events.body()).toBe(opened);
  const entry = (await gateway.call("GET", `/v1/ledger/${headers.get("gatehouse-ledger")}`)).body;
  expect(entry).toMatchObject({ action: "task.dispatch", phase: "intent", task: id });

  clock.advance(15_000);
  for (const reader of [stream, events]) await reader.saw(`${opened}: keep-alive\n\n`);
  for (let more = 2; more <= 5; more++) {
    clock.advance(15_000);
    for (const reader of [stream, events]) await reader.saw(`${opened}${": keep-alive\n\n".repeat(more)}`);
  }
  hold.open();
  await Promise.all([stream.ended(), events.ended()]);
  expect(await ended(gateway, running)).toMatchObject({ status: "succeeded" });
  expect((await ended(gateway, id)).status).toBe("succeeded");
});

test("a stream consists of exactly the frames, in order, and then the server closes the connection", async () => {
  const { gateway, upstream } = stage;
  upstream.script("a", (_request, call) =>
    call === 0
      ? { chunks: ["So"], toolCalls: [{ name: "time__now", arguments: {} }] }
      : { chunks: ["Hello"] },
  );
  const body = JSON.stringify({ agent: "plain", prompt: "hi", tools: ["time.now"] });
  const stream = rawRequest(gateway, { method: "POST", path: "/v1/tasks?stream=true", body });
  await stream.ended();
  const id = headersOf(await stream.head()).headers.get("gatehouse-task-id") ?? "";
  const task = await ended(gateway, id);
  const call = task.tools_called[0];
  const frames: [string, object][] = [
    ["task.created", { id, status: "queued" }],
    ["task.started", { model: "up/a", tier: 1 }],
    ["output.delta", { text: "So" }],
    ["tool.call", { id: call.id, tool: "time.now", arguments: {} }],
    ["tool.result", { id: call.id, tool: "time.now", status: "succeeded", duration_ms: 0 }],
    ["output.delta", { text: "Hello" }],
    ["task.finished", task],
  ];
  const text = frames.map(
    ([event, data], index) => `id: ${index + 1}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`,
  );
  expect(stream.body()).toBe(`: open\n\n${text.join("")}`);

  for (let after = 0; after <= frames.length + 2; after++) {
    const rest = `: open\n\n${text.slice(after).join("")}`;
    const headers = after === 0 ? [] : [`Last-Event-ID: ${after}`];
    for (const request of [
      { path: `/v1/tasks/${id}/events`, headers },
      { path: `/v1/tasks/${id}/events?after=${after}` },
    ]) {
      const again = rawRequest(gateway, request);
      await again.ended();
      expect(again.body()).toBe(rest);
    }
  }
});

test("a client that disconnects affects neither the task nor other clients", async () => {
  const { gateway, upstream } = stage;
  const hold = held({ chunks: ["one ", "two"] });
  upstream.script("a", hold.script);
  const leaver = rawRequest(gateway, { method: "POST", path: "/v1/tasks?stream=true", body: dispatchBody });
  await leaver.saw("two");
  const id = headersOf(await leaver.head()).headers.get("gatehouse-task-id") ?? "";
  const stayer = rawRequest(gateway, { path: `/v1/tasks/${id}/events` });
  await stayer.saw("two");
  leaver.socket.destroy();
  const quitter = rawRequest(gateway, { path: `/v1/tasks/${id}/events` });
  await quitter.saw("one");
  quitter.socket.resetAndDestroy();
  clock.advance(60_000);
  await stayer.saw(": keep-alive");
  expect(upstream.requests.at(-1)?.aborted).toBe(false);
  hold.open();
  await stayer.ended();
  expect(await ended(gateway, id)).toMatchObject({ status: "succeeded", output: "one two" });
  expect(stayer.body()).toContain("event: task.finished");
});

test("streams do not count against the request limit", async () => {
  const { gateway, upstream } = stage;
  upstream.script("a", { chunks: ["ok"] });
  await gateway.call("PATCH", "/v1/workspace", {
    body: { limits: { requests_per_minute: 2, enforcement: "enforced" } },
  });
  let refused = await gateway.call("GET", "/v1/tasks");
  for (let tries = 0; refused.status !== 429 && tries < 5; tries++)
    refused = await gateway.call("GET", "/v1/tasks");
  expect([refused.status, refused.body.code]).toEqual([429, "rate_limited"]);
  for (let count = 0; count < 5; count++) {
    const stream = rawRequest(gateway, { method: "POST", path: "/v1/tasks?stream=true", body: dispatchBody });
    await stream.ended();
    const { status, headers } = headersOf(await stream.head());
    expect(status).toBe("HTTP/1.1 200 OK");
    const events = rawRequest(gateway, { path: `/v1/tasks/${headers.get("gatehouse-task-id")}/events` });
    await events.ended();
    expect(events.body()).toBe(stream.body());
  }
  clock.advance(60_000);
  await gateway.call("PATCH", "/v1/workspace", { body: { limits: { requests_per_minute: 1_000_000 } } });
  expect((await ledger(gateway)).length).toBeGreaterThan(0);
});
