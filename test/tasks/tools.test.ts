import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { FakeClock } from "../support/clock.ts";
import { allEvents, outline } from "../support/events.ts";
import type { ToolCallScript } from "../support/fake-model.ts";
import { dispatch, ended, ledger, openEvents, run, type Stage, startStage, unsettled } from "./support.ts";

let stage: Stage;
const clock = new FakeClock(Date.UTC(2026, 5, 1, 12));

beforeAll(async () => {
  stage = await startStage({ clock, tiers: { 1: ["a"] } });
  await stage.gateway.agent("plain");
});
afterAll(() => stage.stop());

/** Scripts a model that asks for these calls once and then answers. */
function ask(...toolCalls: ToolCallScript[]): void {
  stage.upstream.script("a", (_request, call) =>
    call === 0 ? { chunks: ["Let me see. "], toolCalls } : { chunks: ["It is", " noon."] },
  );
}

const NOW = "2026-06-01T12:00:00.000Z";
type Case = [name: string, call: ToolCallScript, tool: string, args: unknown, status: string, shown: string];
/** A call refused before it is sent counts as denied, both in the task and in the ledger. */
const REFUSED: readonly [shown: string, code: string][] = [
  ["not valid", "invalid_arguments"],
  ["not a valid JSON object", "invalid_arguments"],
  ["There is no tool", "unknown_tool"],
];
const CALLS: Case[] = [
  ["succeeds", { name: "time__now", arguments: {} }, "time.now", {}, "succeeded", NOW],
  [
    "succeeds in a time zone",
    { name: "time__now", arguments: { time_zone: "Europe/Berlin" } },
    ...(["time.now", { time_zone: "Europe/Berlin" }, "succeeded", "2026-06-01 14:00:00"] as const),
  ],
  [
    "fails in no time zone",
    { name: "time__now", arguments: { time_zone: "Mars/Base" } },
    ...(["time.now", { time_zone: "Mars/Base" }, "failed", "not an IANA time zone"] as const),
  ],
  [
    "is denied for invalid arguments",
    { name: "time__now", arguments: { zone: 1 } },
    ...(["time.now", { zone: 1 }, "denied", "not valid"] as const),
  ],
  [
    "is denied for arguments that are not JSON",
    { name: "time__now", arguments: '{"time_zone":' },
    ...(["time.now", '{"time_zone":', "denied", "not a valid JSON object"] as const),
  ],
  [
    "is denied for a tool that does not exist",
    { name: "rm_rf", arguments: {} },
    "rm_rf",
    {},
    "denied",
    "There is no tool",
  ],
];

describe("a tool call", () => {
  test.each(CALLS)("%s", async (_name, call, tool, args, status, shown) => {
    const { gateway, upstream } = stage;
    ask(call);
    const id = await dispatch(gateway, { agent: "plain", tools: ["time.now"] });
    const events = await allEvents(await openEvents(gateway, id));
    const task = await ended(gateway, id);
    expect(task).toMatchObject({ status: "succeeded", output: "It is noon.", usage: { steps: 2 } });
    expect(task.tools_called).toEqual([
      {
        id: expect.stringMatching(/^call_[0-9a-z]{26}$/i),
        ...{ tool, arguments: args, status, started_at: NOW, duration_ms: 0 },
      },
    ]);
    const callId = task.tools_called[0].id;
    expect(outline(events)).toEqual([
      ...["task.created", "task.started", "output.delta", "tool.call", "tool.result"],
      ...["output.delta", "task.finished"],
    ]);
    expect(events[3]?.data).toEqual({ id: callId, tool, arguments: args });
    expect(events[4]?.data).toEqual({ id: callId, tool, status, duration_ms: 0 });
    const told = upstream.requests.at(-1)?.body.messages.find(({ role }) => role === "tool");
    expect(String(told?.content)).toContain(shown);
    const entries = (await ledger(gateway)).filter((entry) => entry.task === id && entry.tool);
    const code = REFUSED.find(([words]) => words === shown)?.[1];
    expect(entries.map(({ phase }) => phase)).toEqual(code ? ["single"] : ["intent", "outcome"]);
    expect(entries.at(-1)).toMatchObject({ outcome: status, ...(code && { code }) });
  });
});

test("a task calls no unlisted tool, although its agent may use all", async () => {
  ask({ name: "time__now", arguments: {} });
  const before = stage.upstream.requests.length;
  const task = await run(stage.gateway, { agent: "plain" });
  expect(task.tools_called).toMatchObject([{ tool: "time__now", status: "denied" }]);
  expect(stage.upstream.requests.slice(before).map(({ body }) => body.tools)).toEqual([undefined, undefined]);
  const calls = (await ledger(stage.gateway)).filter((entry) => entry.task === task.id && entry.tool);
  expect(calls).toMatchObject([
    { phase: "single", action: "tool.call", outcome: "denied", code: "unknown_tool" },
  ]);
});

test("calls are listed in the order in which they were made, each with its own id", async () => {
  const zones = ["Asia/Tokyo", "nowhere", "America/Lima"];
  ask(...zones.map((time_zone) => ({ name: "time__now", arguments: { time_zone } })));
  const task = await run(stage.gateway, { agent: "plain", tools: ["time.now"] });
  const called: { id: string; arguments: { time_zone: string }; status: string }[] = task.tools_called;
  expect(called.map((call) => [call.arguments.time_zone, call.status])).toEqual([
    ["Asia/Tokyo", "succeeded"],
    ["nowhere", "failed"],
    ["America/Lima", "succeeded"],
  ]);
  expect(new Set(called.map(({ id }) => id)).size).toBe(3);
});

test.each([1, 3])("max_steps %d ends a task that never stops requesting tools", async (max_steps) => {
  const { gateway, upstream } = stage;
  await gateway.agent(`loop-${max_steps}`, { max_steps });
  upstream.script("a", { toolCalls: [{ name: "time__now", arguments: {} }] });
  const before = upstream.requests.length;
  const task = await run(gateway, { agent: `loop-${max_steps}`, tools: ["time.now"] });
  expect(task).toMatchObject({ status: "failed", output: null, error: { code: "tool_loop_limit" } });
  expect(task.usage.steps).toBe(max_steps);
  expect(task.tools_called.length).toBe(max_steps);
  expect(upstream.requests.length - before).toBe(max_steps);
});

test("a tool that the agent lost after the dispatch is not called", async () => {
  const { gateway, upstream } = stage;
  await gateway.call("PATCH", "/v1/workspace", {
    body: { limits: { concurrent_tasks: 1, enforcement: "enforced" } },
  });
  await gateway.agent("losing");
  const { promise, resolve } = Promise.withResolvers<void>();
  upstream.script("a", { chunks: ["first"], gate: promise });
  const first = await dispatch(gateway, { agent: "plain" });
  const second = await dispatch(gateway, { agent: "losing", tools: ["time.now"] });
  await gateway.call("PATCH", "/v1/agents/losing", { body: { tools: [] } });
  const asked = upstream.requests.length;
  resolve();
  expect((await ended(gateway, first)).status).toBe("succeeded");
  expect(await ended(gateway, second)).toMatchObject({ status: "failed", tools_called: [] });
  expect(upstream.requests.length).toBe(asked);
});

test("after all of it every intent has exactly one outcome", async () => {
  expect(unsettled(await ledger(stage.gateway))).toEqual([]);
});
