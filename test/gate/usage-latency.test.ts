/** Percentiles of latencies, computed from counts per class of latency. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { LATENCY_BOUNDS_MS, latencyClass, NOT_MEASURED, percentile } from "../../src/gate/usage/latency.ts";

const LAST = LATENCY_BOUNDS_MS.length;

test.each([
  [null, NOT_MEASURED],
  [0, 0],
  [5, 0],
  [5.1, 1],
  [10, 1],
  [3_600_000, LAST - 1],
  [3_600_001, LAST],
])("%p ms is in class %d", (ms, index) => {
  expect(latencyClass(ms)).toBe(index);
});

test("without measurements there is no percentile", () => {
  expect(percentile([], 50)).toBeNull();
  expect(percentile([0, 0], 99)).toBeNull();
});

test("percentiles are interpolated within their class, and the last class gives its lower bound", () => {
  expect(percentile([0, 0, 0, 0, 4], 50)).toBe(75);
  expect(percentile([2, 2], 50)).toBe(5);
  expect(percentile([2, 2], 75)).toBe(7.5);
  expect(percentile([...Array<number>(LAST).fill(0), 3], 50)).toBe(3_600_000);
});

test("percentiles are in the class found by sorting all latencies, and never decrease", () => {
  const latency = fc.oneof(fc.integer({ min: 0, max: 200 }), fc.integer({ min: 0, max: 4_000_000 }));
  fc.assert(
    fc.property(fc.array(latency, { minLength: 1, maxLength: 300 }), (all) => {
      const counts = Array<number>(LAST + 1).fill(0);
      for (const ms of all) counts[latencyClass(ms)] = (counts[latencyClass(ms)] ?? 0) + 1;
      const sorted = all.toSorted((a, b) => a - b);
      let before = 0;
      for (const percent of [1, 50, 95, 99, 100]) {
        const exact = sorted[Math.ceil((percent * all.length) / 100) - 1] ?? -1;
        const index = latencyClass(exact);
        const found = percentile(counts, percent) ?? -1;
        const lower = LATENCY_BOUNDS_MS[index - 1] ?? 0;
        expect(found).toBeGreaterThanOrEqual(lower);
        expect(found).toBeLessThanOrEqual(LATENCY_BOUNDS_MS[index] ?? lower);
        expect(found).toBeGreaterThanOrEqual(before);
        before = found;
      }
    }),
    { seed: 7 },
  );
});
