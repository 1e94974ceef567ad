import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type PassageTerms, SEGMENT_LIMIT, Segment } from "../../../src/vault/segments/segment.ts";
import { encodeSegment, mergeSegments } from "../../../src/vault/segments/segment-writer.ts";

/** A term of 53 bits, often the same one. */
const term = fc.oneof(
  fc.integer({ min: 0, max: 40 }),
  fc.constantFrom(0, Number.MAX_SAFE_INTEGER, 2 ** 32, 2 ** 32 - 1, 2 ** 52),
);
const DIMENSIONS = 8;
const vector = fc
  .array(fc.integer({ min: -1_000, max: 1_000 }), { minLength: DIMENSIONS, maxLength: DIMENSIONS })
  .filter((numbers) => numbers.some((number) => number !== 0))
  .map((numbers) => Float32Array.from(numbers, (number) => number / Math.hypot(...numbers)));
const passage = fc.record({
  length: fc.oneof(fc.integer({ min: 0, max: 300 }), fc.constantFrom(65_535, 65_536, 1_000_000)),
  terms: fc.array(
    fc.tuple(term, fc.oneof(fc.integer({ min: 1, max: 9 }), fc.constantFrom(255, 256, 70_000))),
    {
      maxLength: 12,
    },
  ),
  vector: fc.option(vector),
});
/** Passages with ascending keys, some of them beyond 32 bits. */
const passages = fc
  .uniqueArray(fc.oneof(fc.integer({ min: 0, max: 500 }), fc.integer({ min: 2 ** 40, max: 2 ** 40 + 500 })), {
    maxLength: 30,
  })
  .chain((keys) =>
    fc.tuple(
      fc.constant(keys.toSorted((left, right) => left - right)),
      fc.array(passage, fixed(keys.length)),
    ),
  )
  .map(([keys, made]): PassageTerms[] =>
    keys.map((key, at) => ({
      key,
      length: made[at]?.length ?? 0,
      terms: new Map(made[at]?.terms),
      vector: made[at]?.vector ?? null,
    })),
  );

function fixed(length: number) {
  return { minLength: length, maxLength: length };
}

/** A segment's contents as plain objects. The model caps numbers as the layout does. */
interface Model {
  readonly lengths: ReadonlyMap<number, number>;
  /** Key and frequency of each passage that contains the term. */
  readonly postings: ReadonlyMap<number, ReadonlyMap<number, number>>;
}

function modelOf(given: readonly PassageTerms[]): Model {
  const postings = new Map<number, Map<number, number>>();
  for (const { key, terms } of given) {
    for (const [each, frequency] of terms) {
      const held = postings.get(each) ?? new Map<number, number>();
      postings.set(each, held.set(key, Math.min(frequency, 255)));
    }
  }
  return { lengths: new Map(given.map(({ key, length }) => [key, Math.min(length, 65_535)])), postings };
}

function readBack(segment: Segment): Model {
  const lengths = new Map(Array.from(segment.keys, (key, at) => [key, segment.lengths[at] as number]));
  const postings = new Map<number, Map<number, number>>();
  for (const [at, each] of segment.terms.entries()) {
    const held = new Map<number, number>();
    for (let place = segment.offsets[at] as number; place < (segment.offsets[at + 1] as number); place++) {
      const key = segment.keys[segment.passages[place] as number] as number;
      expect(held.has(key)).toBe(false);
      held.set(key, segment.frequencies[place] as number);
    }
    postings.set(each, held);
  }
  return { lengths, postings };
}

function expectSays(segment: Segment, given: readonly PassageTerms[]): void {
  const model = modelOf(given);
  expect(readBack(segment)).toEqual(model);
  expect(segment.words).toBe([...model.lengths.values()].reduce((sum, length) => sum + length, 0));
  expect(Array.from(segment.keys)).toEqual([...model.lengths.keys()]);
  for (const key of [...model.lengths.keys(), -1, 501, 2 ** 41]) {
    expect(segment.placeOf(key) >= 0).toBe(model.lengths.has(key));
  }
  expect(Array.from(segment.terms)).toEqual(
    [...model.postings.keys()].toSorted((left, right) => left - right),
  );
  const wanted = [...model.postings.keys(), 3, 41, 2 ** 33];
  for (const each of wanted) {
    const count = model.postings.get(each)?.size ?? 0;
    const at = segment.find(each);
    expect(at >= 0).toBe(count > 0);
    expect(at < 0 ? 0 : segment.passagesWith(at)).toBe(count);
  }
  const counts = new Map([[3, 1_000]]);
  segment.countAll(Float64Array.from(new Set(wanted)).sort(), counts);
  const expected = new Map([...model.postings].map(([each, held]) => [each, held.size]));
  expect(counts).toEqual(expected.set(3, (expected.get(3) ?? 0) + 1_000));
  expectVectors(segment, given);
}

/**
 * Segments hold a rounded copy of each vector, so cosines must be right to 0.02, and 0 for a passage without a
 * vector.
 */
function expectVectors(segment: Segment, given: readonly PassageTerms[]): void {
  const asked = given.find((each) => each.vector)?.vector;
  for (const [place, { vector: own }] of given.entries()) {
    expect(segment.scales[place] === 0).toBe(!own);
    if (!asked) continue;
    const cosine = own ? asked.reduce((sum, number, at) => sum + number * (own[at] as number), 0) : 0;
    expect(Math.abs(segment.similarity(place, asked) - cosine)).toBeLessThan(0.02);
  }
}

describe("a segment", () => {
  test("returns what was put into it", () => {
    fc.assert(fc.property(passages, (given) => expectSays(new Segment(encodeSegment(given)), given)));
  });

  test("is read from bytes anywhere in memory", () => {
    fc.assert(
      fc.property(passages, fc.integer({ min: 0, max: 9 }), (given, shift) => {
        const bytes = encodeSegment(given);
        const moved = new Uint8Array(bytes.length + shift);
        moved.set(bytes, shift);
        expectSays(new Segment(moved.subarray(shift)), given);
      }),
    );
  });

  test("is the same for the same passages, built at once or merged from parts in any order", () => {
    fc.assert(
      fc.property(passages, fc.array(fc.integer({ min: 0, max: 3 }), fixed(30)), (given, parts) => {
        fc.pre(given.length > 0);
        const groups = [0, 1, 2, 3].map((part) => given.filter((_, at) => parts[at] === part));
        const segments = groups.map((group) => new Segment(encodeSegment(group)));
        for (const order of [segments, segments.toReversed()]) {
          const merged = mergeSegments(order);
          expect(merged).toHaveLength(encodeSegment(given).length);
          if (merged) expectSays(new Segment(merged), given);
        }
      }),
    );
  });

  test("without some passages is as if these had never existed", () => {
    fc.assert(
      fc.property(passages, fc.integer({ min: 1, max: 4 }), (given, modulus) => {
        const halves = [given.slice(0, 9), given.slice(9)].map((half) => new Segment(encodeSegment(half)));
        const drop = (key: number) => key % modulus === 0;
        const left = given.filter(({ key }) => !drop(key));
        const merged = mergeSegments(halves, drop);
        if (left.length === 0) expect(merged).toBeNull();
        else expectSays(new Segment(merged as Uint8Array), left);
      }),
    );
  });

  test("with the most passages is full; with one more it is refused", () => {
    const full = Array.from({ length: SEGMENT_LIMIT }, (_, key) => ({
      key,
      length: 1,
      terms: new Map([[key, 1]]),
    }));
    const segment = new Segment(encodeSegment(full));
    expectSays(segment, full);
    const one = new Segment(encodeSegment([{ key: 1e6, length: 1, terms: new Map() }]));
    expect(() => mergeSegments([segment, one])).toThrow(RangeError);
    expect(mergeSegments([segment, one], (key) => key === 0)).not.toBeNull();
  });

  test.each<[string, (bytes: Uint8Array) => Uint8Array]>([
    ["another version", (bytes) => bytes.with(0, 2)],
    ["cut short", (bytes) => bytes.slice(0, -1)],
    ["trailing bytes", (bytes) => new Uint8Array([...bytes, 0])],
    ["another count", (bytes) => bytes.with(8, 9)],
  ])("%s is refused", (_, spoil) => {
    const bytes = encodeSegment([{ key: 1, length: 2, terms: new Map([[5, 1]]) }]);
    expect(() => new Segment(spoil(bytes))).toThrow("not an index segment");
  });
});
