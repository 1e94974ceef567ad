import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createLog } from "../../src/base/log.ts";
import { FakeClock } from "../support/clock.ts";
import { allEvents, outline } from "../support/events.ts";
import type { Behaviour } from "../support/fake-model.ts";
import {
  dispatch,
  ended,
  gate,
  ledger,
  openEvents,
  run,
  type Stage,
  startStage,
  unsettled,
} from "./support.ts";

const SECRET = "sk-live-hunter2";
const clock = new FakeClock();
const lines: string[] = [];
let stage: Stage;

beforeAll(async () => {
  stage = await startStage({
    clock,
    log: createLog("debug", clock, (line) => void lines.push(line)),
    providers: { gone: '{ kind: openai-compatible, base_url: "http://127.0.0.1:1/v1" }' },
    tiers: { 2: ["a", "b"], 3: ["gone/x", "b"], 4: ["a"], 5: ["gone/x"] },
  });
  await stage.gateway.agent("plain");
  await stage.gateway.agent("high", { tier_policy: { tiers: [4, 3] } });
});
afterAll(() => stage.stop());

const KEYS = [
  ..."id agent tier prompt tools status output credits_consumed tools_called model usage error".split(" "),
  ..."metadata created_by created_at started_at finished_at".split(" "),
];
const ID = /^task_[0-9a-hjkmnp-tv-z]{26}$/i;

test("a dispatch answers 202 with its Location, and the task can be read from queued to succeeded", async () => {
  const { gateway, upstream } = stage;
  const [asked, end] = [gate(), gate()];
  upstream.script("a", () => {
    asked.open();
    return { chunks: ["Hel", "lo"], usage: { prompt_tokens: 3, completion_tokens: 2 }, gate: end.opened };
  });
  const request = { agent: "plain", prompt: "hi", metadata: { order: "7" } };
  const answer = await gateway.call("POST", "/v1/tasks", { body: request });
  expect(answer.status).toBe(202);
  expect(answer.body).toEqual({ id: expect.stringMatching(ID), status: "queued" });
  expect(answer.headers.get("location")).toBe(`/v1/tasks/${answer.body.id}`);
  expect(answer.headers.get("idempotency-replayed")).toBeNull();
  const path = answer.headers.get("location") ?? "";

  await asked.opened;
  const running = (await gateway.call("GET", path)).body;
  expect(Object.keys(running).sort()).toEqual([...KEYS].sort());
  expect(running).toMatchObject({ status: "running", output: null, finished_at: null, error: null });
  end.open();
  const task = await ended(gateway, answer.body.id);
  const created = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  expect(task).toEqual({
    ...{ id: answer.body.id, ...request, tier: 2, tools: [], status: "succeeded", output: "Hello" },
    ...{ credits_consumed: 0, tools_called: [], model: "up/a", error: null },
    usage: { input_tokens: 3, output_tokens: 2, steps: 1 },
    created_by: expect.stringMatching(/^token:tok_/),
    ...{ created_at: created, started_at: created, finished_at: created },
  });
});

test("without a tier, the lowest that the policy allows is used", async () => {
  stage.upstream.script("b", { chunks: ["b"] });
  expect(await run(stage.gateway, { agent: "high" })).toMatchObject({ tier: 3, model: "up/b", output: "b" });
});

test("the agent's instructions and the prompt reach the model, and nothing else does", async () => {
  const { gateway, upstream } = stage;
  await gateway.agent("told", { instructions: "Be brief.", owner: "someone", description: "hidden" });
  upstream.script("a", { chunks: ["ok"] });
  await run(gateway, { agent: "told", prompt: "Why?", metadata: { secret: "m" } });
  const { messages, tools, model } = upstream.requests.at(-1)?.body ?? {};
  expect({ messages, tools, model }).toEqual({
    messages: [
      { role: "system", content: "Be brief." },
      { role: "user", content: "Why?" },
    ],
    tools: undefined,
    model: "a",
  });
});

type Fallback = [name: string, script: Behaviour, reason: string, reset: boolean];
const FALLBACKS: Fallback[] = [
  ["500", { status: 500 }, "http_500", false],
  ["503", { status: 503 }, "http_503", false],
  ["429", { status: 429 }, "rate_limited", false],
  ["a cut before any text", { chunks: ["x"], cutAfter: 0 }, "connection", false],
  ["a cut in mid-stream", { chunks: ["wrong ", "x"], cutAfter: 1 }, "connection", true],
  ["an end without a finish", { chunks: ["wrong"], noFinish: true }, "cut", true],
];

describe("the next model is tried after", () => {
  test.each(FALLBACKS)("%s", async (_name, script, reason, reset) => {
    const { gateway, upstream } = stage;
    upstream.script("a", script);
    upstream.script("b", { chunks: ["ri", "ght"] });
    const id = await dispatch(gateway, { agent: "plain" });
    const events = await allEvents(await openEvents(gateway, id));
    const wrong = reset ? ["output.delta", "output.reset"] : [];
    const right = ["output.delta", "task.finished"];
    expect(outline(events)).toEqual(["task.created", "task.started", ...wrong, "model.fallback", ...right]);
    const fallback = events.find(({ event }) => event === "model.fallback");
    expect(fallback?.data).toEqual({ from: "up/a", to: "up/b", reason });
    expect(await ended(gateway, id)).toMatchObject({
      status: "succeeded",
      output: "right",
      model: "up/b",
      error: null,
    });
  });

  test("a connection that is refused", async () => {
    stage.upstream.script("b", { chunks: ["right"] });
    const id = await dispatch(stage.gateway, { agent: "plain", tier: 3 });
    const events = await allEvents(await openEvents(stage.gateway, id));
    expect(events[1]?.data).toEqual({ model: "gone/x", tier: 3 });
    expect(events[2]?.data).toEqual({ from: "gone/x", to: "up/b", reason: "connection" });
  });

  test.each<[string, Behaviour]>([
    ["the answer's beginning", { hang: true }],
    ["its next part", { chunks: ["wrong ", "x"], hangAfter: 1 }],
  ])("a timeout while waiting for %s", async (_name, script) => {
    const { gateway, upstream } = stage;
    const asked = gate();
    upstream.script("a", () => {
      asked.open();
      return script;
    });
    upstream.script("b", { chunks: ["right"] });
    const id = await dispatch(gateway, { agent: "plain" });
    const reading = allEvents(await openEvents(gateway, id));
    await asked.opened;
    // Time stops once the next model is called, so that a busy machine cannot time out that call too.
    const timer = setInterval(() => {
      if (upstream.requests.at(-1)?.model !== "b") clock.advance(20_000);
    }, 20);
    const events = await reading.finally(() => clearInterval(timer));
    expect(events.find(({ event }) => event === "model.fallback")?.data.reason).toBe("timeout");
    expect(await ended(gateway, id)).toMatchObject({ status: "succeeded", output: "right" });
    expect(upstream.requests.findLast(({ model }) => model === "a")?.aborted).toBe(true);
  });
});

test.each([400, 413, 422])("%d is the request's own fault and is not retried", async (status) => {
  const { gateway, upstream } = stage;
  upstream.script("a", { status });
  const before = upstream.requests.length;
  const task = await run(gateway, { agent: "plain" });
  expect(task).toMatchObject({ status: "failed", output: null, error: { code: "model_unavailable" } });
  expect(upstream.requests.slice(before).map(({ model }) => model)).toEqual(["a"]);
});

test("if all models fail, the task fails as model_unavailable; if all are silent, as timeout", async () => {
  const { gateway, upstream } = stage;
  upstream.script("a", { status: 500 });
  upstream.script("b", { status: 429 });
  const failed = await run(gateway, { agent: "plain" });
  expect(failed).toMatchObject({ status: "failed", model: "up/b", error: { code: "model_unavailable" } });
  expect(failed.finished_at).not.toBeNull();
  expect(await run(gateway, { agent: "plain", tier: 5 })).toMatchObject({
    error: { code: "model_unavailable" },
  });

  upstream.script("a", { hang: true });
  const reading = run(gateway, { agent: "plain", tier: 4 });
  const timer = setInterval(() => clock.advance(60_000), 20);
  const silent = await reading.finally(() => clearInterval(timer));
  expect(silent).toMatchObject({ status: "failed", error: { code: "timeout" } });
});

test("an upstream's own error text is shown nowhere: not in the task, the events, the ledger or the log", async () => {
  const { gateway, upstream } = stage;
  const error = { error: { message: `bad key ${SECRET}`, status: 500 } };
  const bytes = new TextEncoder().encode(`data: ${JSON.stringify(error)}\n\n`);
  upstream.script("a", { rawBytes: [bytes] });
  upstream.script("b", { rawBytes: [new TextEncoder().encode(`data: {"broken ${SECRET}\n\n`)] });
  const id = await dispatch(gateway, { agent: "plain" });
  const events = await (await openEvents(gateway, id)).text();
  const task = await ended(gateway, id);
  expect(task).toMatchObject({ status: "failed", error: { code: "model_unavailable" } });
  const entries = await ledger(gateway);
  for (const text of [events, JSON.stringify([task, entries]), lines.join("")])
    expect(text).not.toContain(SECRET);
  expect((await gateway.call("GET", "/metrics")).body).not.toContain(SECRET);
});

test("after all of it every intent has exactly one outcome", async () => {
  expect(unsettled(await ledger(stage.gateway))).toEqual([]);
});
