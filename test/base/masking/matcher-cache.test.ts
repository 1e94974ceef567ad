import { expect, test } from "bun:test";
import { MatcherCache } from "../../../src/base/masking/matcher-cache.ts";

test("matchers take no more memory than their limit, whatever order they are used in", () => {
  const size = new MatcherCache().get({}, () => ["pattern"]).bytes;
  const cache = new MatcherCache(3 * size);
  const made: number[] = [];
  const keys = [0, 1, 2, 3].map((index) => ({ index }));
  const use = (index: number) =>
    cache.get(keys[index] ?? {}, () => {
      made.push(index);
      return ["pattern"];
    });
  for (const index of [0, 1, 2, 0, 3, 0, 2, 1]) {
    expect(use(index).find("a pattern")).toEqual([[2, 9]]);
    expect(cache.bytes).toBeLessThanOrEqual(3 * size);
  }
  // 3 replaces 1, which was used least recently, and then 1 replaces 3.
  expect(made).toEqual([0, 1, 2, 3, 1]);
});

test("a matcher that is larger than the limit for all is used, and is the only one kept", () => {
  const cache = new MatcherCache(1);
  const [one, other] = [{}, {}];
  const first = cache.get(one, () => ["first"]);
  expect(cache.get(one, () => [])).toBe(first);
  const second = cache.get(other, () => ["second"]);
  expect(cache.bytes).toBe(second.bytes);
  expect(cache.get(one, () => ["first"])).not.toBe(first);
});
