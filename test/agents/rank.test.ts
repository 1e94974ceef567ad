import { expect, test } from "bun:test";
import { bestSentences } from "../../src/agents/extractive-rank.ts";

const passages = [{ text: "Refunds take a week. The cellar is dry.", source: "s" }];

test("a question is read at its top only, and not at all where there is nothing to hold against it", () => {
  const long = `refund ${"filler ".repeat(140_000)} cellar`;
  expect(bestSentences(long, passages, 3).map(({ text }) => text)).toEqual(["Refunds take a week."]);
  const started = performance.now();
  for (let times = 0; times < 1_000; times++) bestSentences(long, [], 3);
  expect(performance.now() - started).toBeLessThan(500);
});
