import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { isConsistent, rootOfInclusion } from "../../../src/ledger/proof/check.ts";
import {
  consistencyRanges,
  inclusionRanges,
  type LeafRange,
  nodesOf,
  splitOf,
} from "../../../src/ledger/proof/ranges.ts";
import { foldRight } from "../../../src/ledger/proof/tree.ts";
import { SYMBOLIC, symbolOf } from "./symbolic.ts";

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 7 });

const MOST = Number.MAX_SAFE_INTEGER;
/** Sizes around powers of two, where lost precision would show, and any others. */
const size = fc.oneof(
  fc.integer({ min: 1, max: 2_000 }),
  fc
    .tuple(fc.integer({ min: 1, max: 52 }), fc.integer({ min: -3, max: 3 }))
    .map(([power, more]) => Math.max(1, 2 ** power + more)),
  fc.integer({ min: 1, max: MOST }),
  fc.constantFrom(2 ** 40, 2 ** 40 - 1, 2 ** 40 + 1, MOST, MOST - 1),
);
const placeIn = (size: number) =>
  fc.oneof(fc.integer({ min: 0, max: size - 1 }), fc.constantFrom(0, size - 1, Math.floor(size / 2)));
const symbols = (ranges: readonly LeafRange[]) => ranges.map(symbolOf);
const upTo = (end: number) => ({ size: end, root: symbolOf({ start: 0, end }) });

describe("there are no ranges", () => {
  test.each([
    [-1, 5],
    [5, 5],
    [6, 5],
    [0, 0],
    [Number.NaN, 5],
    [0, Number.NaN],
  ])("for leaf %p of %p", (index, size) => {
    expect(() => inclusionRanges(index, size)).toThrow(RangeError);
  });

  test.each([
    [-1, 5],
    [6, 5],
    [Number.NaN, 5],
    [0, Number.NaN],
  ])("from %p to %p", (from, to) => {
    expect(() => consistencyRanges(from, to)).toThrow(RangeError);
  });
});

test.each([
  [2, 1],
  [3, 2],
  [4, 2],
  [5, 4],
  [8, 4],
  [9, 8],
  [2 ** 40, 2 ** 39],
  [2 ** 40 + 1, 2 ** 40],
  [MOST, 2 ** 52],
])("a tree of %p is split at %p", (size, split) => {
  expect(splitOf(size)).toBe(split);
});

describe("at every size that a number holds exactly", () => {
  test("the ranges of an inclusion proof lead from the leaf to the whole tree", () => {
    fc.assert(
      fc.property(
        size.chain((size) => fc.tuple(placeIn(size), fc.constant(size))),
        ([index, size]) => {
          const proof = symbols(inclusionRanges(index, size));
          const leaf = symbolOf({ start: index, end: index + 1 });
          expect(rootOfInclusion(SYMBOLIC, leaf, index, size, proof)).toEqual(upTo(size).root);
        },
      ),
      { numRuns: 1_000 },
    );
  });

  test("the ranges of a consistency proof make up both trees", () => {
    fc.assert(
      fc.property(
        size.chain((size) => fc.tuple(placeIn(size), fc.constant(size))),
        ([from, to]) => {
          for (const [older, newer] of [
            [from, to],
            [from + 1, to],
          ] as const) {
            const proof = symbols(consistencyRanges(older, newer));
            expect(isConsistent(SYMBOLIC, upTo(older), upTo(newer), proof)).toBe(true);
          }
        },
      ),
      { numRuns: 1_000 },
    );
  });

  test("the nodes of a proof's range are adjacent, as few as possible, and make up the range", () => {
    fc.assert(
      fc.property(
        size.chain((size) => fc.tuple(placeIn(size), fc.constant(size))),
        ([place, size]) => {
          const ranges = [
            { start: 0, end: size },
            ...inclusionRanges(place, size),
            ...consistencyRanges(place, size),
          ];
          for (const range of ranges) {
            const nodes = nodesOf(range);
            const parts = nodes.map(({ level, index }) =>
              symbolOf({ start: index * 2 ** level, end: (index + 1) * 2 ** level }),
            );
            expect(foldRight(SYMBOLIC, parts)).toEqual(symbolOf(range));
            // One node for each 1 bit of the range's length: no two neighbours could be joined.
            const ones = (range.end - range.start).toString(2).replaceAll("0", "").length;
            expect(nodes).toHaveLength(ones);
          }
        },
      ),
      { numRuns: 500 },
    );
  });

  test("a proof has at most one hash per level", () => {
    expect(inclusionRanges(0, MOST)).toHaveLength(53);
    expect(consistencyRanges(2 ** 52 + 1, MOST).length).toBeLessThanOrEqual(54);
    expect(nodesOf({ start: 0, end: MOST })).toHaveLength(53);
  });
});

test("nothing is made of an empty range, or between a tree and itself", () => {
  expect(nodesOf({ start: 7, end: 7 })).toEqual([]);
  expect(foldRight(SYMBOLIC, [])).toBeUndefined();
  expect([0, 1, 7, MOST].map((size) => consistencyRanges(size, size))).toEqual([[], [], [], []]);
  expect(consistencyRanges(0, MOST)).toEqual([]);
});
