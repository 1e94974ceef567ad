import { expect, test } from "bun:test";
import fc from "fast-check";
import { estimatePlace, placeNear, placeOf } from "../../../src/vault/segments/sorted.ts";
import { hash53 } from "../../../src/vault/terms/words.ts";

/** Numbers up to 2^53, evenly spread or not at all. */
const number = fc.oneof(
  fc.integer({ min: 0, max: 50 }),
  fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
  fc.constantFrom(0, 2 ** 31, 2 ** 32, 2 ** 52, Number.MAX_SAFE_INTEGER),
);
const ascending = fc
  .uniqueArray(number, { maxLength: 200 })
  .map((numbers) => Float64Array.from(numbers).sort());

test("a number is found from any place, and only if it is there", () => {
  fc.assert(
    fc.property(ascending, number, fc.nat({ max: 199 }), (sorted, wanted, near) => {
      const expected = sorted.indexOf(wanted);
      expect(placeOf(sorted, wanted)).toBe(expected);
      expect(placeNear(sorted, wanted, Math.min(near, Math.max(0, sorted.length - 1)))).toBe(expected);
      expect(placeNear(sorted, wanted, estimatePlace(sorted, wanted))).toBe(expected);
      for (const [at, each] of sorted.entries()) {
        expect(placeNear(sorted, each, estimatePlace(sorted, each))).toBe(at);
      }
    }),
  );
});

test("the place of a hash is estimated closely", () => {
  const sorted = Float64Array.from({ length: 7_000 }, (_, at) => hash53(`word ${at}`)).sort();
  const errors = Array.from(sorted, (hash, at) => Math.abs(at - estimatePlace(sorted, hash)));
  expect(errors.reduce((sum, error) => sum + error, 0) / errors.length).toBeLessThan(8);
});
