import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { cost, dearest, isFree } from "../../src/base/call-cost.ts";
import { toCredits, toMicros } from "../../src/base/credits.ts";

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 7 });

describe("credits to micro-credits", () => {
  test.each([
    ["a negative price", -0.1],
    ["finer than a millionth", 0.0000001],
    ["half a millionth more", 2.0000015],
    ["finer than a millionth, on a large number", 1234.5678901],
    ["a third", 1 / 3],
    ["beyond exact integers", 1e10],
    ["not a number", Number.NaN],
    ["infinity", Number.POSITIVE_INFINITY],
  ])("refuses %s", (_, credits) => {
    expect(toMicros(credits)).toBeUndefined();
  });

  test.each([
    [0, 0],
    [0.1, 100_000],
    [0.000001, 1],
    [1.1, 1_100_000],
    [0.1 + 0.7 - 0.1, 700_000],
    [1_000_000.000001, 1_000_000_000_001],
    [9_007_199_254, 9_007_199_254_000_000],
  ])("accepts %p", (credits, micros) => {
    expect(toMicros(credits)).toBe(micros);
  });

  test("returns every decimal of six places exactly", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 4_000_000_000_000_000 }), (micros) => {
        const written = `${Math.floor(micros / 1e6)}.${String(micros % 1e6).padStart(6, "0")}`;
        expect(toMicros(Number(written))).toBe(micros);
        expect(toMicros(toCredits(micros))).toBe(micros);
      }),
      { numRuns: 2_000 },
    );
  });

  test("refuses every decimal with a seventh place", () => {
    const parts = fc.tuple(
      fc.integer({ min: 0, max: 99_999 }),
      fc.integer({ min: 0, max: 999_999 }),
      fc.integer({ min: 1, max: 9 }),
    );
    fc.assert(
      fc.property(parts, ([whole, millionths, seventh]) => {
        expect(toMicros(Number(`${whole}.${String(millionths).padStart(6, "0")}${seventh}`))).toBeUndefined();
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("the cost of a call", () => {
  test.each([
    ["zero for zero", { input: 0, output: 0 }, 1_000, 1_000, 0],
    ["rounded up", { input: 1, output: 0 }, 1, 0, 1],
    ["exact if it is exact", { input: 1, output: 0 }, 1_000, 0, 1],
    ["rounded once, over both together", { input: 1, output: 1 }, 500, 500, 1],
    ["at any size", { input: 1_000_000, output: 4_000_000 }, 1_000_000, 1_000_000, 5_000_000_000],
  ])("%s", (_, price, inputTokens, outputTokens, micros) => {
    expect(cost(price, { inputTokens, outputTokens })).toBe(micros);
  });

  test("parts that have no price of their own cost as their whole", () => {
    const parts = { cachedTokens: 400, cacheWriteTokens: 300, reasoningTokens: 50 };
    const tokens = { inputTokens: 1_000, outputTokens: 100 };
    const price = { input: 7, output: 11 };
    expect(cost(price, { ...tokens, ...parts })).toBe(cost(price, tokens));
  });

  test("parts that exceed their whole are cut to it", () => {
    const price = { input: 1_000, output: 1_000, cachedInput: 0, cacheWrites: 2_000, reasoning: 0 };
    const parts = { cachedTokens: 60, cacheWriteTokens: 1_000_000, reasoningTokens: 1_000_000 };
    expect(cost(price, { inputTokens: 100, outputTokens: 9, ...parts })).toBe(80);
  });

  const micros = fc.integer({ min: 0, max: 1_000_000_000 });
  const tokens = fc.integer({ min: 0, max: 10_000_000 });
  const prices = fc.record(
    { input: micros, output: micros, cachedInput: micros, cacheWrites: micros, reasoning: micros },
    { requiredKeys: ["input", "output"] },
  );
  const counts = fc.record(
    {
      ...{ inputTokens: tokens, outputTokens: tokens },
      ...{ cachedTokens: tokens, cacheWriteTokens: tokens, reasoningTokens: tokens },
    },
    { requiredKeys: ["inputTokens", "outputTokens"] },
  );

  test("is the exact rational number of all five prices, rounded up", () => {
    fc.assert(
      fc.property(prices, counts, (price, used) => {
        const {
          inputTokens,
          outputTokens,
          cachedTokens = 0,
          cacheWriteTokens = 0,
          reasoningTokens = 0,
        } = used;
        const cached = Math.min(cachedTokens, inputTokens);
        const written = Math.min(cacheWriteTokens, inputTokens - cached);
        const reasoned = Math.min(reasoningTokens, outputTokens);
        const exact = [
          [inputTokens - cached - written, price.input],
          [cached, price.cachedInput ?? price.input],
          [written, price.cacheWrites ?? price.input],
          [outputTokens - reasoned, price.output],
          [reasoned, price.reasoning ?? price.output],
        ].reduce((sum, [count = 0, each = 0]) => sum + BigInt(count) * BigInt(each), 0n);
        const charged = BigInt(cost(price, used)) * 1_000n;
        expect(charged >= exact && charged < exact + 1_000n).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });

  test("never exceeds what is reserved for the same tokens, whatever they turn out to be", () => {
    fc.assert(
      fc.property(prices, counts, (price, used) => {
        const { inputTokens, outputTokens } = used;
        const reserved = cost(dearest(price), { inputTokens, outputTokens });
        expect(cost(price, used)).toBeLessThanOrEqual(reserved);
        if (isFree(price)) expect(reserved).toBe(0);
      }),
      { numRuns: 2_000 },
    );
  });
});
