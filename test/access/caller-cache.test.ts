/** Cached callers take a bounded share of memory, whatever their scopes are. */
import { expect, test } from "bun:test";
import type { Caller } from "../../src/access/caller.ts";
import { CallerCache } from "../../src/access/caller-cache.ts";

const caller = (scopes: readonly string[]) => ({
  caller: { name: "t", person: null, role: null, scopes } as Caller,
});
const hashes = (count: number) => Array.from({ length: count }, (_, index) => `hash${index}`);

function mostKept(cache: CallerCache<{ caller: Caller }>, scopes: readonly string[]): number {
  const all = hashes(12_000);
  let most = 0;
  let kept = 0;
  for (const [index, hash] of all.entries()) {
    cache.add(hash, caller(scopes));
    kept = index > 0 && cache.get(all[index - 1] ?? "") === undefined ? 1 : kept + 1;
    most = Math.max(most, kept);
  }
  return most;
}

test("callers with few scopes are limited in number, and those with long lists in bytes", () => {
  expect(mostKept(new CallerCache(), ["admin"])).toBe(10_000);
  const scopes = Array.from({ length: 100 }, (_, index) => `tools:${String(index).padEnd(200, "a")}`);
  const long = mostKept(new CallerCache(), scopes);
  expect(long).toBeGreaterThan(300);
  expect(long).toBeLessThan(800);
});

test("a cache that has been cleared has room again", () => {
  const cache = new CallerCache<{ caller: Caller }>(3_000);
  for (let round = 0; round < 10; round++) {
    cache.add("one", caller(["admin"]));
    cache.add("other", caller(["admin"]));
    expect([cache.get("one"), cache.get("other")]).not.toContain(undefined);
    cache.clear();
    expect(cache.get("one")).toBeUndefined();
  }
});
