import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type Bucket, type BucketRule, fullBucket, left, take } from "../../src/limits/bucket.ts";

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 7 });

const RULE: BucketRule = { capacity: 600, perSecond: 10 };
const rule = fc.record({
  capacity: fc.integer({ min: 1, max: 1_000 }),
  perSecond: fc.double({ min: 0.01, max: 1_000, noNaN: true }),
});
/** Milliseconds since the previous call; negative if the clock stepped back. */
const steps = fc.array(fc.integer({ min: -5_000, max: 20_000 }), { minLength: 1, maxLength: 200 });

function play(of: BucketRule, gaps: readonly number[]) {
  let now = 1_000_000;
  let bucket: Bucket = fullBucket(of, now);
  return gaps.map((gap) => {
    now += gap;
    const taken = take(bucket, of, now);
    bucket = taken.bucket;
    return { now, taken };
  });
}

test("the remainder is what taking would leave, plus the one that it takes", () => {
  fc.assert(
    fc.property(rule, steps, (of, gaps) => {
      let bucket = fullBucket(of, 1_000_000);
      for (const { now, taken } of play(of, gaps)) {
        const before = left(bucket, of, now);
        expect(before >= 1).toBe(taken.allowed);
        if (taken.allowed) expect(before).toBe(taken.remaining + 1);
        bucket = taken.bucket;
      }
    }),
  );
});

describe("a bucket of 600 with 10 a second", () => {
  test("serves 600 at once, and not one more", () => {
    const played = play(RULE, Array(601).fill(0));
    expect(played.filter(({ taken }) => taken.allowed)).toHaveLength(600);
    expect(played.at(-1)?.taken).toMatchObject({
      allowed: false,
      remaining: 0,
      resetSeconds: 60,
      retrySeconds: 1,
    });
  });

  test("says how much is left and when it is full again", () => {
    expect(play(RULE, [0])[0]?.taken).toMatchObject({
      allowed: true,
      remaining: 599,
      resetSeconds: 1,
      retrySeconds: 0,
    });
  });

  test("serves again a tenth of a second later", () => {
    const played = play(RULE, [...Array(600).fill(0), 99, 1, 0]);
    expect(played.slice(-3).map(({ taken }) => taken.allowed)).toEqual([false, true, false]);
  });

  test("never exceeds its capacity, however long it was unused", () => {
    const played = play(RULE, [365 * 86_400_000, ...Array(600).fill(0)]);
    expect(played.filter(({ taken }) => taken.allowed)).toHaveLength(600);
  });

  test("that shrinks is no fuller than its new size", () => {
    expect(take(fullBucket(RULE, 0), { capacity: 5, perSecond: 1 }, 0).remaining).toBe(4);
  });
});

describe("any bucket, any times", () => {
  test("contains between nothing and its capacity, and reports it in whole numbers", () => {
    fc.assert(
      fc.property(rule, steps, (of, gaps) => {
        for (const { taken } of play(of, gaps)) {
          expect(taken.bucket.available).toBeGreaterThanOrEqual(0);
          expect(taken.bucket.available).toBeLessThanOrEqual(of.capacity);
          for (const shown of [taken.remaining, taken.resetSeconds, taken.retrySeconds]) {
            expect(Number.isInteger(shown) && shown >= 0).toBe(true);
          }
        }
      }),
    );
  });

  test("in any period serves no more than its capacity plus the refill", () => {
    fc.assert(
      fc.property(rule, steps, (of, gaps) => {
        const played = play(of, gaps);
        for (let from = 0; from < played.length; from += 7) {
          let served = 0;
          let refilled = 0;
          for (let to = from; to < played.length; to++) {
            if (to > from) refilled += (Math.max(0, gaps[to] ?? 0) / 1_000) * of.perSecond;
            if (played[to]?.taken.allowed) served += 1;
            expect(served).toBeLessThanOrEqual(of.capacity + refilled + 1e-6);
          }
        }
      }),
    );
  });

  test("refuses nobody while it has a token: a caller that waits as told is served", () => {
    fc.assert(
      fc.property(rule, steps, (of, gaps) => {
        for (const { now, taken } of play(of, gaps)) {
          const later = take(taken.bucket, of, now + taken.retrySeconds * 1_000);
          expect(later.allowed || later.bucket.available > 1 - 1e-9).toBe(true);
        }
      }),
    );
  });

  test("is not refilled by a clock that steps back, and continues from there", () => {
    const played = play(RULE, [...Array(600).fill(0), -3_600_000, 100]);
    expect(played.slice(-2).map(({ taken }) => taken.allowed)).toEqual([false, true]);
  });
});
