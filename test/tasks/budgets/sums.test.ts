/**
 * Whatever runs at the same time, the ledger, the tasks, the spending and the API agree on one sum, to a millionth of
 * a credit.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { dispatch, ended, ledger, type Stage, startStage, unsettled } from "../support.ts";
import { reservations, spent } from "./support.ts";

setDefaultTimeout(120_000);
fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 7 });

/** Micro-credits per thousand input and output tokens. */
const PRICES = { odd: [333_333, 666_667], tiny: [1, 1], none: [0, 0] } as const;
type Model = keyof typeof PRICES;
const TOOL_MICROS = 7;

let stage: Stage;
beforeAll(async () => {
  const credits = (model: Model) => [PRICES[model][0] / 1e6, PRICES[model][1] / 1e6] as const;
  stage = await startStage({
    tiers: { 1: ["odd"], 2: ["tiny"], 3: ["none"] },
    prices: { odd: credits("odd"), tiny: credits("tiny") },
    more: 'tools: { "time.*": 0.000007 }',
  });
  for (const name of Object.keys(PRICES)) {
    stage.upstream.script(name, ({ body }) => {
      const prompt = String(body.messages.find(({ role }) => role === "user")?.content);
      const { input, output, calls } = JSON.parse(prompt) as Planned;
      const isAsked = body.messages.at(-1)?.role === "tool" || calls === 0;
      const tool = { name: "time__now", arguments: {} };
      const usage = { prompt_tokens: input, completion_tokens: output };
      return isAsked ? { chunks: ["ok"], usage } : { toolCalls: Array(calls).fill(tool), usage };
    });
  }
  await stage.gateway.agent("open");
  await stage.gateway.agent("budgeted", { budget: { credits_per_day: 1_000_000 } });
});
afterAll(() => stage.stop());

interface Planned {
  readonly agent: string;
  readonly model: Model;
  readonly input: number;
  readonly output: number;
  /** Tool calls in the first step. */
  readonly calls: number;
}

/** Rounds up, in integers. */
function costOf({ model, input, output, calls }: Planned): number {
  const [priceIn, priceOut] = PRICES[model];
  const exact = BigInt(priceIn) * BigInt(input) + BigInt(priceOut) * BigInt(output);
  const call = Number((exact + 999n) / 1_000n);
  return call * (calls > 0 ? 2 : 1) + calls * TOOL_MICROS;
}

const planned = fc
  .record({
    agent: fc.constantFrom("open", "budgeted"),
    model: fc.constantFrom<Model>("odd", "tiny", "none"),
    input: fc.oneof(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 1_000_000 })),
    output: fc.oneof(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 1_000_000 })),
    calls: fc.integer({ min: 0, max: 2 }),
  })
  // Leave out a count of zero, which would mean that the provider has not counted.
  .filter(({ input, output }) => input + output > 0);

test("they are the sum of the calls' costs, each rounded once", async () => {
  const { gateway } = stage;
  let expected = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(planned, { maxLength: 8 }), async (plans) => {
      const micros = await Promise.all(
        plans.map(async (plan) => {
          const { agent, model } = plan;
          const tier = Object.keys(PRICES).indexOf(model) + 1;
          const request = { agent, tier, prompt: JSON.stringify(plan), tools: ["time.now"] };
          const task = await ended(gateway, await dispatch(gateway, request));
          expect(task.status).toBe("succeeded");
          expect(task.credits_consumed).toBe(costOf(plan) / 1e6);
          return costOf(plan);
        }),
      );
      expected += micros.reduce((all, each) => all + each, 0);
      expect(await spent(gateway)).toBe(expected);
      expect(await reservations(gateway)).toBe(0);
    }),
    { numRuns: 15 },
  );
  expect(expected).toBeGreaterThan(0);
  expect(unsettled(await ledger(gateway))).toEqual([]);
});
