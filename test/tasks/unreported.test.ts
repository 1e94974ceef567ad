/**
 * A provider that reports no plausible usage is charged by an estimate, which the ledger marks as such; the charge is
 * never 0 as if reported.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { addConnector } from "../mcp/support.ts";
import type { Behaviour } from "../support/fake-model.ts";
import { startScriptedMcp } from "../support/scripted-mcp.ts";
import { dispatch, type Entry, ended, held, ledger, run, type Stage, startStage } from "./support.ts";

let stage: Stage;
beforeAll(async () => {
  stage = await startStage({
    tiers: { 1: ["paid"], 2: ["paid", "spare"] },
    prices: { paid: [1, 1], spare: [0, 0] },
  });
  await stage.gateway.agent("plain");
});
afterAll(() => stage.stop());

const PROMPT = "12345678";
const ANSWER = "123456789";

/** A stream as real servers write it, with its last `usage` replaced. */
function answering(usage: string, answer = ANSWER): Behaviour {
  const chunk = (rest: string) =>
    `data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"paid",${rest}}\n\n`;
  const stream =
    chunk(`"choices":[{"index":0,"delta":{"role":"assistant","content":"${answer}"},"finish_reason":null}]`) +
    chunk(`"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]${usage}`) +
    "data: [DONE]\n\n";
  return { rawBytes: [new TextEncoder().encode(stream)], delayMs: 0 };
}

async function outcomesOf(task: string): Promise<readonly Entry[]> {
  return (await ledger(stage.gateway)).filter(
    (entry) => entry.task === task && entry.action === "model.call" && entry.phase === "outcome",
  );
}

const counts = (input: string, output: string) =>
  `,"usage":{"prompt_tokens":${input},"completion_tokens":${output},"total_tokens":0}`;

describe("implausible usage is charged by an estimate of what was sent and received", () => {
  test.each([
    ["left out", ""],
    ["null", `,"usage":null`],
    ["of null", counts("null", "null")],
    ["of nothing but zeros", counts("0", "0")],
    ["negative", counts("-5", "-5")],
    ["not whole", counts("0.5", "0.5")],
    ["beyond all numbers", counts("1e300", "1e300")],
    ["without its fields", `,"usage":{"total_tokens":9}`],
  ])("%s", async (_name, usage) => {
    stage.upstream.script("paid", answering(usage));
    const task = await run(stage.gateway, { agent: "plain", prompt: PROMPT });
    expect(task).toMatchObject({
      status: "succeeded",
      output: ANSWER,
      usage: { input_tokens: 2, output_tokens: 3 },
      credits_consumed: 0.005,
    });
    const [outcome] = await outcomesOf(task.id);
    expect(outcome?.detail?.usage).toBe("estimated");
    expect(outcome?.credits).toBe(5_000);
  });

  test.each([
    ["input", counts("1050000", "3"), { input_tokens: 2, output_tokens: 3 }],
    ["output", counts("2", "1050000"), { input_tokens: 2, output_tokens: 3 }],
    ["both", counts("900000000", "900000000"), { input_tokens: 2, output_tokens: 3 }],
  ])(
    "far more %s than that number of bytes allows, and the ledger records it as disbelieved",
    async (which, usage, charged) => {
      stage.upstream.script("paid", answering(usage));
      const task = await run(stage.gateway, { agent: "plain", prompt: PROMPT });
      expect(task).toMatchObject({ status: "succeeded", usage: charged, credits_consumed: 0.005 });
      const disbelieved = {
        input: "input_tokens",
        output: "output_tokens",
        both: "input_tokens output_tokens",
      }[which];
      expect((await outcomesOf(task.id))[0]?.detail).toMatchObject({ usage: "estimated", disbelieved });
    },
  );

  test("and is not used for later estimates: the next call reserves no more than before", async () => {
    const budget = { credits_per_day: 1_000 };
    await stage.gateway.agent("saver", { budget });
    const reserved = async (usage: string): Promise<unknown> => {
      stage.upstream.script("paid", answering(usage));
      const { id } = await run(stage.gateway, { agent: "saver", prompt: PROMPT });
      const intent = (await ledger(stage.gateway)).find(
        (entry) => entry.task === id && entry.action === "model.call" && entry.phase === "intent",
      );
      return intent?.detail?.reserved;
    };
    const before = await reserved(counts("2", "3"));
    await reserved(counts("900000000", "900000000"));
    expect(await reserved(counts("2", "3"))).toBe(before);
  });

  test("half of it missing", async () => {
    stage.upstream.script("paid", answering(counts("null", "7")));
    const one = await run(stage.gateway, { agent: "plain", prompt: PROMPT });
    stage.upstream.script("paid", answering(counts("7", "null")));
    const other = await run(stage.gateway, { agent: "plain", prompt: PROMPT });
    expect([one.usage, other.usage]).toEqual([
      { input_tokens: 2, output_tokens: 7, steps: 1 },
      { input_tokens: 7, output_tokens: 3, steps: 1 },
    ]);
    expect((await outcomesOf(one.id))[0]?.detail?.usage).toBe("estimated");
    expect((await outcomesOf(other.id))[0]?.detail?.usage).toBe("estimated");
  });

  // No token of a known tokenizer has more than 128 bytes. Differences of up to 4 KiB are accepted.
  test.each([
    ["input, too few for what was sent", 16_897, 9, [100, 3], [4_225, 3], "input_tokens"],
    ["output, too few for what was received", 8, 16_897, [2, 100], [2, 4_225], "output_tokens"],
    ["one of each for megabytes", 1e6, 5e5, [1, 1], [250_000, 125_000], "input_tokens output_tokens"],
    ["none beside one for megabytes", 1e6, 5e5, [1, 0], [250_000, 125_000], "input_tokens"],
  ] as const)("%s, and the ledger records it as disbelieved", async (...row) => {
    const [, sent, came, [input, output], charged, names] = row;
    stage.upstream.script("paid", answering(counts(`${input}`, `${output}`), "x".repeat(came)));
    const task = await run(stage.gateway, { agent: "plain", prompt: "x".repeat(sent) });
    const [input_tokens, output_tokens] = charged;
    expect(task.usage).toEqual({ input_tokens, output_tokens, steps: 1 });
    expect((await outcomesOf(task.id))[0]?.detail).toMatchObject({ usage: "estimated", disbelieved: names });
  });

  test("text in place of a number breaks off the answer, and the partial answer is charged", async () => {
    stage.upstream.script("paid", answering(counts('"many"', '"more"')));
    const task = await run(stage.gateway, { agent: "plain", tier: 2, prompt: PROMPT });
    expect(task).toMatchObject({ status: "succeeded", model: "up/spare", credits_consumed: 0.005 });
    expect((await outcomesOf(task.id)).map(({ outcome, detail }) => [outcome, detail?.usage])).toEqual([
      ["failed", "estimated"],
      ["succeeded", "reported"],
    ]);
  });
});

test("the lowest count that is possible for this number of bytes is accepted as reported", async () => {
  const spaces = " ".repeat(16_896);
  stage.upstream.script("paid", answering(counts("100", "100"), spaces));
  const task = await run(stage.gateway, { agent: "plain", prompt: spaces });
  expect(task.usage).toEqual({ input_tokens: 100, output_tokens: 100, steps: 1 });
  expect((await outcomesOf(task.id))[0]?.detail?.usage).toBe("reported");
});

test("large tool definitions are not a lower bound: providers write them in their own way", async () => {
  const properties = { of: { type: "string", description: "x".repeat(50_000) } };
  const tools = startScriptedMcp([{ name: "read", inputSchema: { type: "object", properties } }]);
  await addConnector(stage.gateway, "up", tools.url);
  stage.upstream.script("paid", answering(counts("2", "3")));
  const task = await run(stage.gateway, { agent: "plain", prompt: PROMPT, tools: ["up.read"] });
  await tools.close();
  expect(task.usage).toEqual({ input_tokens: 2, output_tokens: 3, steps: 1 });
});

test("a small but plausible count is accepted as reported, including a count of cached tokens", async () => {
  stage.upstream.script("paid", answering(counts("1", "1")));
  const small = await run(stage.gateway, { agent: "plain", prompt: PROMPT });
  expect(small.usage).toMatchObject({ input_tokens: 1, output_tokens: 1 });
  expect((await outcomesOf(small.id))[0]?.detail?.usage).toBe("reported");
  const cached = `,"usage":{"prompt_tokens":3,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":900},"completion_tokens_details":{"reasoning_tokens":800}}`;
  stage.upstream.script("paid", answering(cached));
  const task = await run(stage.gateway, { agent: "plain", prompt: PROMPT });
  expect(task.usage).toMatchObject({ input_tokens: 900, output_tokens: 800 });
});

describe("a failed call is charged", () => {
  test("nothing if the provider refuses it, and the ledger does not mark that as reported", async () => {
    stage.upstream.script("paid", { status: 500 });
    const task = await run(stage.gateway, { agent: "plain", tier: 2, prompt: PROMPT });
    const [refused] = await outcomesOf(task.id);
    expect(refused).toMatchObject({ outcome: "failed", credits: 0, detail: { usage: "estimated" } });
  });

  test.each([
    ["it was cut off before its first word", { cutAfter: 0 }],
    ["it ended before its first word", { noFinish: true }],
  ] as const)("what was sent when %s", async (_name, behaviour) => {
    stage.upstream.script("paid", { chunks: [], ...behaviour });
    const task = await run(stage.gateway, { agent: "plain", tier: 2, prompt: PROMPT });
    expect(task.model).toBe("up/spare");
    const [lost] = await outcomesOf(task.id);
    expect(lost).toMatchObject({
      outcome: "failed",
      credits: 2_000,
      detail: { input_tokens: 2, output_tokens: 0, usage: "estimated" },
    });
  });

  test("its request and partial answer if it is cancelled", async () => {
    const hold = held({ chunks: ["1234", "5678"] });
    stage.upstream.script("paid", hold.script);
    const id = await dispatch(stage.gateway, { agent: "plain", prompt: PROMPT });
    await hold.asked;
    await stage.gateway.call("POST", `/v1/tasks/${id}/cancel`);
    hold.open();
    await ended(stage.gateway, id);
    const [outcome] = await outcomesOf(id);
    expect(outcome).toMatchObject({ outcome: "cancelled", detail: { input_tokens: 2, usage: "estimated" } });
    expect(outcome?.credits).toBeGreaterThanOrEqual(2_000);
  });
});
