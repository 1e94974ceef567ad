import { expect, test } from "bun:test";
import { expectedCost, RecentOutputs } from "../../../src/tasks/expected-cost.ts";

const PRICE = { input: 1_000_000, output: 2_000_000 };

test("a call is expected to give the longest of the last sixteen answers of its model, and a thousand tokens before the first", () => {
  const outputs = new RecentOutputs();
  expect(outputs.expected("a")).toBe(1_000);
  outputs.note("a", 5_000);
  expect(outputs.expected("b")).toBe(1_000);
  for (let answer = 1; answer < 16; answer++) {
    outputs.note("a", answer);
    expect(outputs.expected("a")).toBe(5_000);
  }
  outputs.note("a", 7);
  expect(outputs.expected("a")).toBe(15);
});

test("no more than a thousand models are remembered, the last ones", () => {
  const outputs = new RecentOutputs();
  for (let model = 0; model <= 1_000; model++) outputs.note(`m${model}`, 5);
  expect([0, 1, 1_000].map((model) => outputs.expected(`m${model}`))).toEqual([1_000, 5, 5]);
});

test("it costs what is sent and what is expected; a free model nothing, one with any price something", () => {
  const messages = [{ role: "user", text: "x".repeat(16) }] as const;
  expect(expectedCost({ input: 0, output: 0 }, "y".repeat(8), messages, 1_000)).toBe(0);
  expect(expectedCost({ input: 1, output: 1 }, null, messages, 10)).toBe(1);
  expect(expectedCost(PRICE, null, messages, 10)).toBe(4_000 + 20_000);
  expect(expectedCost(PRICE, "y".repeat(8), messages, 10)).toBe(6_000 + 20_000);
});
