import { expect, test } from "bun:test";
import { timestamp } from "../../src/base/clock.ts";

test("each time has its own text, whichever times were written before", () => {
  const start = Date.UTC(2026, 0, 2, 3, 4, 5);
  const times = Array.from({ length: 300 }, (_, index) => start + ((index * 37) % 150) * 32);
  for (const ms of [...times, -1, 0, 2 ** 31, 2 ** 40, ...times]) {
    expect(timestamp(ms)).toBe(new Date(ms).toISOString());
  }
  expect(() => timestamp(Number.NaN)).toThrow(RangeError);
});
