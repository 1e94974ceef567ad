import { expect, spyOn, test } from "bun:test";
import { bestSentences } from "../../src/agents/extractive/rank.ts";

const passages = [{ text: "Refunds take a week. The cellar is dry.", source: "s" }];

test("only the beginning of a question is read, and none of it without passages to compare", () => {
  const long = `refund ${"filler ".repeat(140_000)} cellar`;
  expect(bestSentences(long, passages, 3).map(({ text }) => text)).toEqual(["Refunds take a week."]);
  const slice = spyOn(String.prototype, "slice");
  try {
    expect(bestSentences(long, [], 3)).toEqual([]);
    expect(slice).not.toHaveBeenCalled();
    // Only this much of the question is read.
    bestSentences(long, passages, 3);
    expect(slice.mock.calls[0]).toEqual([0, 4_096]);
  } finally {
    slice.mockRestore();
  }
});
