import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { cost } from "../../src/base/call-cost.ts";
import { dispatch, ended, held, ledger, run, type Stage, startStage, until } from "./support.ts";

let stage: Stage;
const PRICES = {
  cent: [0.01, 0.02],
  tiny: [0.000001, 0.000001],
  odd: [0.333333, 0.666667],
  dear: [12.5, 99.999999],
} as const;

beforeAll(async () => {
  stage = await startStage({
    prices: PRICES,
    tiers: {
      1: ["free"],
      2: ["cent"],
      3: ["tiny"],
      4: ["odd"],
      5: ["dear"],
      6: ["odd", "dear"],
      7: ["free", "cent"],
    },
  });
  await stage.gateway.agent("plain");
});
afterAll(() => stage.stop());

const script = (model: string, input: number, output: number) =>
  stage.upstream.script(model, {
    chunks: ["ok"],
    usage: { prompt_tokens: input, completion_tokens: output },
  });

type Row = [tier: number, model: string, input: number, output: number, credits: number];
const TABLE: Row[] = [
  [1, "free", 1_000_000, 1_000_000, 0],
  [2, "cent", 1, 0, 0.00001],
  [2, "cent", 1000, 1000, 0.03],
  [2, "cent", 123_456, 987_654, 20.98764],
  [3, "tiny", 1, 0, 0.000001],
  [3, "tiny", 1000, 0, 0.000001],
  [3, "tiny", 500, 500, 0.000001],
  [3, "tiny", 1001, 0, 0.000002],
  [4, "odd", 1, 1, 0.001],
  [4, "odd", 1, 0, 0.000334],
  [4, "odd", 0, 1, 0.000667],
  [4, "odd", 3, 7, 0.005667],
  [5, "dear", 7, 13, 1.3875],
];

describe("a call costs to the millionth, rounded up once:", () => {
  test.each(TABLE)("tier %d (%s), %d in, %d out: %d", async (tier, model, input, output, credits) => {
    script(model, input, output);
    const task = await run(stage.gateway, { agent: "plain", tier });
    expect(task.credits_consumed).toBe(credits);
    expect(task.usage).toEqual({ input_tokens: input, output_tokens: output, steps: 1 });
  });
});

test("a cost is always a safe integer, even with absurd prices and counts", () => {
  const greatest = Number.MAX_SAFE_INTEGER;
  const price = { input: greatest, output: greatest };
  expect(cost(price, { inputTokens: greatest, outputTokens: greatest })).toBe(greatest);
  expect(cost(price, { inputTokens: 999, outputTokens: 0 })).toBeLessThan(greatest);
});

test("the rounding is that of exact arithmetic, up", () => {
  const amount = fc.integer({ min: 0, max: 10_000_000 });
  fc.assert(
    fc.property(amount, amount, amount, amount, (priceIn, priceOut, input, output) => {
      const exact = BigInt(priceIn) * BigInt(input) + BigInt(priceOut) * BigInt(output);
      const micros = BigInt(
        cost({ input: priceIn, output: priceOut }, { inputTokens: input, outputTokens: output }),
      );
      expect(micros * 1000n - exact).toBeGreaterThanOrEqual(0n);
      expect(micros * 1000n - exact).toBeLessThan(1_000n);
    }),
  );
});

test("steps and failed attempts add up, equally in the task, the ledger and the workspace's month", async () => {
  const { gateway, upstream } = stage;
  const month = async () => (await gateway.call("GET", "/v1/workspace")).body.usage.credits_this_month;
  const before = await month();
  upstream.script("odd", (_request, call) =>
    call === 0
      ? {
          toolCalls: [{ name: "time__now", arguments: {} }],
          usage: { prompt_tokens: 1, completion_tokens: 1 },
        }
      : { chunks: ["twelve chars"], cutAfter: 1 },
  );
  script("dear", 7, 13);
  const task = await run(gateway, { agent: "plain", tier: 6, tools: ["time.now"] });
  expect(task).toMatchObject({ status: "succeeded", model: "up/dear", usage: { steps: 2 } });
  const calls = (await ledger(gateway)).filter(
    (entry) => entry.task === task.id && entry.phase === "outcome",
  );
  const models = calls.filter(({ action }) => action === "model.call");
  expect(models.map(({ outcome, model }) => [outcome, model])).toEqual([
    ["succeeded", "up/odd"],
    ["failed", "up/odd"],
    ["succeeded", "up/dear"],
  ]);
  expect(models.map(({ detail }) => detail?.usage)).toEqual(["reported", "estimated", "reported"]);
  const micros = models.reduce((sum, { credits = 0 }) => sum + credits, 0);
  expect(Math.round(task.credits_consumed * 1e6)).toBe(micros);
  expect(calls.at(-1)).toMatchObject({ action: "task.dispatch", credits: micros });
  expect(Math.round(((await month()) - before) * 1e6)).toBe(micros);
  const tokens = (name: string) => models.reduce((sum, { detail }) => sum + Number(detail?.[name]), 0);
  expect(task.usage).toEqual({
    input_tokens: tokens("input_tokens"),
    output_tokens: tokens("output_tokens"),
    steps: 2,
  });
});

test("an attempt without any output costs nothing", async () => {
  stage.upstream.script("free", { status: 500 });
  script("cent", 1000, 0);
  const task = await run(stage.gateway, { agent: "plain", tier: 7 });
  expect(task).toMatchObject({
    credits_consumed: 0.01,
    usage: { input_tokens: 1000, output_tokens: 0, steps: 1 },
  });
});

test("without counts usage is estimated, and a cancelled call is charged for its request and partial answer", async () => {
  const { gateway, upstream } = stage;
  upstream.script("cent", { chunks: ["1234", "56789"], usage: null });
  const estimated = await run(gateway, { agent: "plain", tier: 2, prompt: "12345678" });
  expect(estimated.usage).toEqual({ input_tokens: 2, output_tokens: 3, steps: 1 });

  const hold = held({ chunks: ["1234", "5678"] });
  upstream.script("cent", hold.script);
  const id = await dispatch(gateway, { agent: "plain", tier: 2, prompt: "12345678" });
  await hold.asked;
  const events = await fetch(`${gateway.url}/v1/tasks/${id}/events`, {
    headers: { authorization: `Bearer ${gateway.admin}` },
  });
  let seen = "";
  for await (const chunk of events.body ?? []) {
    seen += new TextDecoder().decode(chunk);
    if (seen.includes("5678")) break;
  }
  await gateway.call("POST", `/v1/tasks/${id}/cancel`);
  const task = await ended(gateway, id);
  expect(task).toMatchObject({ status: "cancelled", usage: { input_tokens: 2, output_tokens: 2, steps: 0 } });
  expect(task.credits_consumed).toBe(0.00006);
  await until(() => upstream.requests.at(-1)?.aborted === true);
});

test("a spent budget stops a task's next step, and the task says so", async () => {
  const { gateway, upstream } = stage;
  await gateway.agent("poor", { budget: { credits_per_day: 0.01 } });
  upstream.script("cent", {
    toolCalls: [{ name: "time__now", arguments: {} }],
    usage: { prompt_tokens: 1000, completion_tokens: 0 },
  });
  const asked = upstream.requests.length;
  const task = await run(gateway, { agent: "poor", tier: 2, tools: ["time.now"] });
  expect(task).toMatchObject({
    status: "failed",
    credits_consumed: 0.01,
    error: { code: "credits_exhausted" },
  });
  expect(upstream.requests.length - asked).toBe(1);
  const denied = (await ledger(gateway)).filter(
    (entry) => entry.task === task.id && entry.outcome === "denied",
  );
  expect(denied).toMatchObject([{ action: "model.call", phase: "single", code: "credits_exhausted" }]);
});
