import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { cost, toCredits, toMicros } from "../../src/base/credits.ts";

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
    ["rounded half up", { input: 1, output: 0 }, 500, 0, 1],
    ["rounded down below half", { input: 1, output: 0 }, 499, 0, 0],
    ["rounded once, over both together", { input: 1, output: 1 }, 300, 300, 1],
    ["at any size", { input: 1_000_000, output: 4_000_000 }, 1_000_000, 1_000_000, 5_000_000_000],
  ])("%s", (_, price, input, output, micros) => {
    expect(cost(price, input, output)).toBe(micros);
  });

  test("is the exact rational number, rounded half up", () => {
    const price = fc.integer({ min: 0, max: 1_000_000_000 });
    const tokens = fc.integer({ min: 0, max: 10_000_000 });
    fc.assert(
      fc.property(price, price, tokens, tokens, (input, output, inputTokens, outputTokens) => {
        const exact = BigInt(input) * BigInt(inputTokens) + BigInt(output) * BigInt(outputTokens);
        const rounded = BigInt(cost({ input, output }, inputTokens, outputTokens));
        // rounded - 1/2 <= exact / 1000 < rounded + 1/2
        expect(2n * exact >= 2_000n * rounded - 1_000n && 2n * exact < 2_000n * rounded + 1_000n).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });
});
