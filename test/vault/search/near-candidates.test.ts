/** The rounded copies of vectors only say which exact ones to compare: the nearest are among those. */
import { expect, test } from "bun:test";
import { nearCandidates } from "../../../src/vault/search/near-candidates.ts";
import { exactSimilarity, roundable } from "../../../src/vault/segments/cosine.ts";
import { Segment } from "../../../src/vault/segments/segment.ts";
import { encodeSegment } from "../../../src/vault/segments/segment-writer.ts";
import { seeded } from "../../faults/support.ts";

const SEGMENT = 500;

/** Vectors around a few centres, which are harder to tell apart than vectors of random directions. */
function vectorsOf(count: number, dimensions: number, spread: number, random: () => number): Float32Array[] {
  const centres = Array.from({ length: 5 }, () => Array.from({ length: dimensions }, () => random() - 0.5));
  return Array.from({ length: count }, (_, at) =>
    Float32Array.from(centres[at % 5] as number[], (number) => number + (random() - 0.5) * spread),
  );
}

function segmentsOf(vectors: readonly Float32Array[]): Segment[] {
  const passages = vectors.map((vector, key) => ({
    key,
    length: 0,
    terms: new Map(),
    vector: roundable(vector),
  }));
  return Array.from(
    { length: Math.ceil(vectors.length / SEGMENT) },
    (_, at) => new Segment(encodeSegment(passages.slice(at * SEGMENT, (at + 1) * SEGMENT))),
  );
}

test.each([
  [30, 1],
  [384, 1],
  [384, 0.3],
  [1_024, 1],
])("with %d numbers and a spread of %d", (dimensions, spread) => {
  const random = seeded(dimensions);
  const vectors = vectorsOf(3_000, dimensions, spread, random);
  const segments = segmentsOf(vectors);
  for (const question of vectorsOf(5, dimensions, 2, random)) {
    for (const isShown of [() => true, (key: number) => key % 3 === 0]) {
      const exact = vectors
        .map((vector, key) => ({ key, score: exactSimilarity(vector, question) }))
        .filter(({ key }) => isShown(key))
        .sort((left, right) => right.score - left.score || left.key - right.key);
      const limit = 100;
      const candidates = nearCandidates(segments, roundable(question), limit, isShown);
      expect(candidates.length).toBeLessThanOrEqual(512);
      const nearest = exact.slice(0, limit).map(({ key }) => key);
      expect(nearest.filter((key) => !candidates.includes(key))).toEqual([]);
    }
  }
});

test("passages that are not shown are no candidates", () => {
  const segments = segmentsOf(vectorsOf(10, 8, 1, seeded(1)));
  expect(nearCandidates(segments, new Float32Array(8).fill(1), 3, () => false)).toEqual([]);
});
