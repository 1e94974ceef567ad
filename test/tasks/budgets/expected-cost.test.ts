import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { expectedCost, TokenEstimates } from "../../../src/models/expected-cost.ts";

const PRICE = { input: 1_000_000, output: 2_000_000 };

test("a call is expected to produce the longest of its model's last sixteen answers, or a thousand tokens at first", () => {
  const estimates = new TokenEstimates();
  expect(estimates.output("a")).toBe(1_000);
  estimates.noteOutput("a", 5_000);
  expect(estimates.output("b")).toBe(1_000);
  for (let answer = 1; answer < 16; answer++) {
    estimates.noteOutput("a", answer);
    expect(estimates.output("a")).toBe(5_000);
  }
  estimates.noteOutput("a", 7);
  expect(estimates.output("a")).toBe(15);
});

test("only the thousand most recent models are remembered", () => {
  const estimates = new TokenEstimates();
  for (let model = 0; model <= 1_000; model++) estimates.noteOutput(`m${model}`, 5);
  expect([0, 1, 1_000].map((model) => estimates.output(`m${model}`))).toEqual([1_000, 5, 5]);
});

describe("the tokens of a request", () => {
  const MEGABYTE = 1_000_000;
  const after = (...counted: readonly (readonly [sentBytes: number, inputTokens: number])[]) => {
    const estimates = new TokenEstimates();
    for (const [sentBytes, inputTokens] of counted) estimates.noteInput("a", { sentBytes, inputTokens });
    return estimates.input("a", MEGABYTE);
  };

  test("are half its bytes before anything is counted", () => {
    expect(after()).toBe(500_256);
  });

  test("follow what the provider counts, and the densest of the last sixteen requests", () => {
    const dense = after([100_000, 80_000], [100_000, 25_000]);
    expect(dense).toBeGreaterThanOrEqual(790_000);
    expect(dense).toBeLessThan(810_000);
    expect(after([100_000, 80_000], ...Array(16).fill([100_000, 40_000]))).toBeLessThan(410_000);
  });

  test("are never fewer than a third of its bytes, whatever a provider counts", () => {
    expect(after([100_000, 1])).toBeGreaterThanOrEqual(MEGABYTE / 3);
    expect(after([100_000, 0])).toBeGreaterThanOrEqual(MEGABYTE / 3);
  });

  test("include what the provider added to any of the last sixteen requests", () => {
    expect(after([100, 20_000])).toBe(500_256 + 20_000 - 306);
    expect(after([100, 20_000], ...Array(16).fill([100, 10]))).toBe(500_256);
  });

  test("are at most one token per byte beyond that, so one absurd count does not multiply", () => {
    expect(after([5_000, 50_000])).toBeLessThan(MEGABYTE + 50_000);
  });

  test("are at least the count of an identical request, whatever came before and after it", () => {
    const call = fc.record({
      sentBytes: fc.integer({ min: 1, max: 5_000_000 }),
      inputTokens: fc.integer({ min: 0, max: 1_000_000_000 }),
    });
    fc.assert(
      fc.property(fc.array(call, { minLength: 1, maxLength: 16 }), (calls) => {
        const estimates = new TokenEstimates();
        for (const each of calls) estimates.noteInput("a", each);
        for (const { sentBytes, inputTokens } of calls) {
          expect(estimates.input("a", sentBytes)).toBeGreaterThanOrEqual(inputTokens);
        }
      }),
    );
  });
});

test("a call is expected to cost its request and its answer: nothing for a free model, something at any price", () => {
  const estimates = new TokenEstimates();
  estimates.noteOutput("a", 10);
  const costOf = (price: typeof PRICE, bytes: () => number) => expectedCost(price, estimates, "a", bytes);
  const unasked = () => {
    throw new Error("nothing is measured where no price hangs on it");
  };
  expect(costOf({ input: 0, output: 0 }, unasked)).toBe(0);
  expect(costOf({ input: 0, output: 2_000_000 }, unasked)).toBe(20_000);
  expect(costOf({ input: 1, output: 1 }, () => 16)).toBe(1);
  expect(costOf(PRICE, () => 16)).toBe(264_000 + 20_000);
});
