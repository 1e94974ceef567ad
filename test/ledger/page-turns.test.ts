/** Pages of entries that are collected at the same time take turns. */
import { expect, test } from "bun:test";
import { collectPage } from "../../src/ledger/reading/query.ts";
import { mostPerTurn } from "../support/loop-turns.ts";

test("many pages share the turns of the event loop", async () => {
  let looks = 0;
  async function* empty() {
    for (let reached = 1; ; reached++) {
      looks += 1;
      yield { entries: [], reached, isLast: false };
    }
  }
  const pages = Array.from({ length: 40 }, () =>
    collectPage(1, empty(), { order: "asc", after: undefined, limit: 10, looks: 20 }),
  );
  await new Promise((resolve) => setImmediate(resolve));
  expect(await mostPerTurn(Promise.all(pages), () => looks)).toBeLessThanOrEqual(12);
  expect((await Promise.all(pages)).map(({ next }) => next)).toEqual(Array(40).fill(20));
});
