/** What is derived from lists that tenants write takes a bounded share of memory. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { WeakCache } from "../../src/base/weak-cache.ts";

describe("a weak cache", () => {
  const keys = Array.from({ length: 1_000 }, (_, index) => ({ index }));

  test("keeps no more bytes than it may", () => {
    const cache = new WeakCache<object, { bytes: number }>(1_000);
    for (const key of keys) cache.add(key, { bytes: 10 });
    const kept = keys.filter((key) => cache.get(key) !== undefined);
    expect(kept.length).toBeGreaterThan(0);
    expect(kept.length).toBeLessThanOrEqual(100);
  });

  test("keeps a value that is in use, however many others come", () => {
    const cache = new WeakCache<object, { bytes: number }>(1_000);
    const used = {};
    const value = { bytes: 10 };
    cache.add(used, value);
    for (const key of keys) {
      cache.add(key, { bytes: 10 });
      expect(cache.get(used)).toBe(value);
    }
  });

  test("counts what values gain and release", () => {
    const cache = new WeakCache<object, { bytes: number }>(1_000);
    const [one, other] = [{ bytes: 10 }, { bytes: 10 }];
    cache.add(one, one);
    cache.add(other, other);
    for (let round = 0; round < 100; round++) {
      cache.grow(one, 400);
      cache.grow(one, -400);
    }
    expect([cache.get(one), cache.get(other)]).toEqual([one, other]);
    cache.grow(one, 900);
    cache.grow(one, 900);
    expect(cache.get(other)).toBeUndefined();
  });
});

/** The number of lists, and of names that each is compared with. One result takes 200 bytes or more. */
const [LISTS, NAMES] = [2_000, 200];

test("results of lists of patterns take a bounded share of memory, however many lists there are", () => {
  const program = `
    import { heapStats } from "bun:jsc";
    import { restrictsTool } from ${JSON.stringify(join(import.meta.dir, "..", "..", "src", "base", "glob.ts"))};
    const names = Array.from({ length: ${NAMES} }, (_, index) => "c." + "a".repeat(100) + index);
    const lists = Array.from({ length: ${LISTS} }, (_, index) => ["?" + "z".repeat(63) + index]);
    const size = () => {
      Bun.gc(true);
      const { heapSize, extraMemorySize } = heapStats();
      return heapSize + extraMemorySize;
    };
    const before = size();
    for (const patterns of lists) for (const name of names) restrictsTool(patterns, name);
    console.log(Math.round((size() - before) / 1024 / 1024), lists.length);`;
  const { stdout, stderr } = Bun.spawnSync([process.execPath, "--no-env-file", "-e", program]);
  expect(stderr.toString()).toBe("");
  expect(Number(stdout.toString().split(" ")[0])).toBeLessThan(40);
}, 60_000);
