/** Tasks at the prices of the list and of the configuration: refused, reserved, charged, and charged after a crash. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { verify } from "../../ledger/verify/scene.ts";
import { startFakeModel } from "../../support/fake-model.ts";
import { startGateway } from "../../support/gateway.ts";
import { dispatch, ended, held, ledger, run, type Stage, startStage, unsettled, until } from "../support.ts";

setDefaultTimeout(60_000);

const FREE_OF = { models: { allow: ["up/unknown"] } };
/** As YAML, in credits per 1,000 tokens. */
const DETAILED = `models:
  up/detailed: { input: 10, output: 20, cached_input: 1, cache_writes: 12.5, reasoning: 40 }
  up/odd: { input: 0.333333, output: 0.666667, cached_input: 0.000001, reasoning: 0.999999 }
prices: { unknown: refuse }`;

let stage: Stage;
beforeAll(async () => {
  stage = await startStage({
    tiers: {
      1: ["detailed"],
      2: ["unknown"],
      3: ["unknown", "detailed"],
      4: ["builtin/extractive"],
      5: ["odd"],
    },
    more: DETAILED,
  });
  await stage.gateway.agent("plain");
  await stage.gateway.agent("budgeted", { budget: { credits_per_day: 100_000 } });
});
afterAll(() => stage.stop());

test("a model without a price is refused before anything is written, if unknown prices are refused", async () => {
  const { call } = stage.gateway;
  const before = stage.upstream.requests.length;
  const refused = await call("POST", "/v1/tasks", { body: { agent: "plain", tier: 2, prompt: "hi" } });
  expect(refused).toMatchObject({ status: 422, body: { code: "model_unpriced" } });
  expect(refused.body.detail).toContain("up/unknown");
  const scheduled = await call("POST", "/v1/schedules", {
    body: { name: "daily", cron: "0 3 * * *", task: { agent: "plain", tier: 2, prompt: "hi" } },
  });
  expect(scheduled).toMatchObject({ status: 422 });
  await stage.gateway.agent("narrow", { tier_policy: FREE_OF });
  const narrow = await call("POST", "/v1/tasks", { body: { agent: "narrow", tier: 3, prompt: "hi" } });
  expect(narrow).toMatchObject({ status: 422, body: { code: "model_unpriced" } });
  expect(stage.upstream.requests.length).toBe(before);
  const [denied] = (await ledger(stage.gateway)).filter(({ code }) => code === "model_unpriced");
  expect(denied).toMatchObject({ action: "task.dispatch", outcome: "denied", agent: "plain", tier: 2 });
});

test("the priced models of a tier are used, and the built-in one needs no price", async () => {
  stage.upstream.script("detailed", { chunks: ["ok"] });
  const before = stage.upstream.requests.length;
  expect(await run(stage.gateway, { agent: "plain", tier: 3 })).toMatchObject({ model: "up/detailed" });
  expect(await run(stage.gateway, { agent: "plain", tier: 4 })).toMatchObject({ status: "succeeded" });
  expect(stage.upstream.requests.slice(before).map(({ model }) => model)).toEqual(["detailed"]);
});

test("cached input and reasoning cost their own prices, and the entry names them", async () => {
  stage.upstream.script("detailed", {
    chunks: ["ok"],
    usage: {
      ...{ prompt_tokens: 1_000, prompt_tokens_details: { cached_tokens: 600 } },
      ...{ completion_tokens: 100, completion_tokens_details: { reasoning_tokens: 50 } },
    },
  });
  const task = await run(stage.gateway, { agent: "budgeted", tier: 1 });
  // 400 × 10 + 600 × 1 + 50 × 20 + 50 × 40, for each thousand.
  expect(task.credits_consumed).toBe(7.6);
  const [, outcome] = (await ledger(stage.gateway)).filter(
    (entry) => entry.task === task.id && entry.action === "model.call",
  );
  expect(outcome).toMatchObject({
    credits: 7_600_000,
    detail: { input_tokens: 1_000, output_tokens: 100, cached_tokens: 600, reasoning_tokens: 50 },
  });
});

test("charges are exact sums, whatever parts a provider reports", async () => {
  const count = fc.oneof(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 100_000 }));
  const part = fc.integer({ min: 0, max: 100_000 });
  const month = async () =>
    Math.round((await stage.gateway.call("GET", "/v1/workspace")).body.usage.credits_this_month * 1e6);
  await fc.assert(
    fc.asyncProperty(count, count, part, part, async (input, output, cachedPart, reasoningPart) => {
      const [cached, reasoning] = [Math.min(cachedPart, input), Math.min(reasoningPart, output)];
      stage.upstream.script("odd", {
        chunks: ["ok"],
        usage: {
          ...{ prompt_tokens: input, prompt_tokens_details: { cached_tokens: cached } },
          ...{ completion_tokens: output, completion_tokens_details: { reasoning_tokens: reasoning } },
        },
      });
      const before = await month();
      const task = await run(stage.gateway, { agent: "budgeted", tier: 5 });
      const thousandths =
        BigInt(input - cached) * 333_333n +
        BigInt(cached) * 1n +
        BigInt(output - reasoning) * 666_667n +
        BigInt(reasoning) * 999_999n;
      const micros = Number((thousandths + 999n) / 1_000n);
      expect(Math.round(task.credits_consumed * 1e6)).toBe(micros);
      expect((await month()) - before).toBe(micros);
    }),
    { numRuns: 25 },
  );
});

test("a lost call costs its reservation at all five prices, and the ledger verifies", async () => {
  const model = startFakeModel();
  const directories = [mkdtempSync(join(tmpdir(), "gatehouse-prices-"))];
  const yaml = `providers:\n  up: { kind: openai-compatible, base_url: "${model.url}" }\ntiers:\n  1: { models: [up/detailed] }\n${DETAILED}\n`;
  const [first = ""] = directories;
  let gateway = await startGateway({ yaml, dataDir: first, isOnFiles: true });
  await gateway.agent("budgeted", { budget: { credits_per_day: 1_000 } });
  const hold = held();
  model.script("detailed", hold.script);
  const id = await dispatch(gateway, { agent: "budgeted", prompt: "x".repeat(16) });
  await hold.asked;
  const copy = mkdtempSync(join(tmpdir(), "gatehouse-prices-"));
  cpSync(first, copy, { recursive: true });
  directories.push(copy);
  await gateway.stop();
  model.script("detailed", { chunks: ["ok"], usage: { prompt_tokens: 10, completion_tokens: 10 } });
  gateway = await startGateway({ yaml, dataDir: copy, isOnFiles: true });
  expect(await ended(gateway, id)).toMatchObject({ status: "succeeded" });
  const entries = await ledger(gateway);
  const lost = entries.find(({ code }) => code === "interrupted");
  const intent = entries.find(({ seq }) => seq === lost?.ref);
  expect(lost?.credits).toBe(Number(intent?.detail?.reserved));
  expect(lost?.credits).toBeGreaterThan(40_000_000);
  expect(unsettled(entries)).toEqual([]);
  await gateway.stop();
  expect((await verify(join(copy, "gatehouse.db"))).verdict).toBe("holds");
  await model.close();
  for (const each of directories) rmSync(each, { recursive: true, force: true });
});

test("a task that was accepted before its model needed a price ends without a call", async () => {
  const model = startFakeModel();
  const dataDir = mkdtempSync(join(tmpdir(), "gatehouse-prices-"));
  const yaml = (more: string) =>
    `providers:\n  up: { kind: openai-compatible, base_url: "${model.url}" }\ntiers:\n  1: { models: [up/a] }\nlimits: { running_tasks_per_node: 1 }\ndrain_seconds: 0\n${more}`;
  let gateway = await startGateway({ yaml: yaml(""), dataDir });
  await gateway.agent("plain");
  const hold = held();
  model.script("a", hold.script);
  await dispatch(gateway, { agent: "plain" });
  await hold.asked;
  const queued = await dispatch(gateway, { agent: "plain" });
  await gateway.stop();
  const asked = model.requests.length;
  gateway = await startGateway({ yaml: yaml("prices: { unknown: refuse }\n"), dataDir });
  const task = await ended(gateway, queued);
  expect(task).toMatchObject({ status: "failed", error: { code: "model_unavailable" } });
  expect(task.error.message).toContain("no price is known");
  await until(() => model.requests.length === asked);
  await gateway.stop();
  await model.close();
  rmSync(dataDir, { recursive: true, force: true });
});

test("with a rate, models of a known vendor cost their listed prices", async () => {
  const model = startFakeModel();
  const gateway = await startGateway({
    yaml: `providers:\n  o: { kind: openai, base_url: "${model.url}", api_key: k }\ntiers:\n  1: { models: [o/gpt-5-mini] }\nprices: { credits_per_usd: 100 }\n`,
  });
  const key = await gateway.token({ scopes: ["models:call"] });
  const asked = await gateway.call("POST", "/v1/chat/completions", {
    token: key,
    body: { model: "o/gpt-5-mini", messages: [{ role: "user", content: "hi" }] },
  });
  expect(asked.status).toBe(200);
  const outcome = (await ledger(gateway)).find(
    ({ phase, action }) => phase === "outcome" && action === "model.call",
  );
  const { input_tokens: input, output_tokens: output } = outcome?.detail ?? {};
  // 0.25 and 2 dollars per million tokens.
  expect(outcome?.credits).toBe(Number(input) * 25 + Number(output) * 200);
  await gateway.stop();
  await model.close();
});
