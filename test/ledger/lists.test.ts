import { expect, test } from "bun:test";
import { endOfRun } from "../../src/ledger/lists.ts";

test.each([
  ["up", 10_000, 1, 14_096],
  ["down", 10_000, -1, 5_904],
  ["down to the first block", 7, -1, 0],
] as const)("one search goes 4,096 checked blocks further at most: %s", (_, block, step, end) => {
  let asked = 0;
  const isIn = () => {
    asked += 1;
    return true;
  };
  expect(endOfRun(block, step, isIn)).toBe(end);
  expect(asked).toBe(Math.abs(end - block));
});

test("a search ends before a block that is not checked", () => {
  expect(endOfRun(3, 1, (block) => block < 9)).toBe(8);
  expect(endOfRun(3, -1, () => false)).toBe(3);
});
