import type { BoundarySegments, IndexReader } from "../index-reader.ts";
import { documentOf } from "../rows/keys.ts";
import { LexicalRanking } from "./lexical-ranking.ts";
import { byScore, type Scored, type ScoredAt } from "./top-k.ts";

/** Maximum number of results of one sqlite-vec query. */
const NEAREST_LIMIT = 4_096;

/**
 * The weight of vectors relative to words. Spelling vectors only supplement words: 0.2 (nDCG@10 on two collections,
 * design section 3). A model's vectors weigh as much as words.
 */
const LEXICAL_WEIGHT = 0.2;
const MODEL_WEIGHT = 0.5;

/** Vectors of passages, as needed by a search. Similarities are cosines. */
export interface VectorSource {
  /** Its weight in hybrid search, from 0 to 1. Words have the rest. */
  readonly weight: number;
  /** Whether the vectors reflect meaning rather than only spelling. */
  readonly isModel: boolean;
  /** Similarities by passage key, without passages that have no vector. */
  similarities(passages: readonly ScoredAt[]): Map<number, number>;
  /** The nearest passages of the boundary, best first, within the documents in `only` if given. */
  nearest(limit: number, only: ReadonlySet<number> | null): Scored[];
}

/**
 * `builtin/lexical`: compares the quantised copies in the segments, and orders the nearest by their exact vectors.
 */
export function lexicalSource(
  index: IndexReader,
  space: number,
  vector: Float32Array,
  reach: BoundarySegments,
): VectorSource {
  const ranking = new LexicalRanking(vector, reach.segments);
  return {
    weight: LEXICAL_WEIGHT,
    isModel: false,
    similarities: (passages) => new Map(passages.map(({ key, at }) => [key, ranking.similarity(at)])),
    nearest(limit, only) {
      const near = ranking.best(limit, only);
      // The rest only replaces near-duplicates: quantisation alone does not move any of it to the front.
      const first = near.slice(0, Math.ceil(limit / 2));
      const keys = first.map(({ key }) => key);
      const exact = index.similarities(space, vector, keys);
      const better = first.map((passage) => ({ ...passage, score: exact.get(passage.key) ?? passage.score }));
      return [...better, ...near.slice(first.length)].sort(byScore);
    },
  };
}

/** A model's vectors, from sqlite-vec's table: one search in each scope's partition. */
export function modelSource(
  index: IndexReader,
  space: number,
  vector: Float32Array,
  reach: BoundarySegments,
): VectorSource {
  const similarities = (keys: readonly number[]) => index.similarities(space, vector, keys);
  return {
    weight: MODEL_WEIGHT,
    isModel: true,
    similarities: (passages) => similarities(passages.map(({ key }) => key)),
    nearest(limit, only) {
      if (only === null) return nearestShown(index, space, vector, reach, limit);
      // Every passage of the filtered documents is compared, so that rare values are found however distant they are.
      const keys = reach.segments.flatMap((segment) =>
        Array.from(segment.keys).filter((key) => only.has(documentOf(key))),
      );
      return [...similarities(keys)]
        .map(([key, score]) => ({ key, score }))
        .sort(byScore)
        .slice(0, limit);
    },
  };
}

/**
 * A document's vectors exist before it becomes visible and after it is hidden, so only passages contained in a
 * segment count. If others are among the nearest, more are requested.
 */
function nearestShown(
  index: IndexReader,
  space: number,
  vector: Float32Array,
  { scopes, segments }: BoundarySegments,
  limit: number,
): Scored[] {
  for (let asked = limit; ; asked = Math.min(asked * 4, NEAREST_LIMIT)) {
    const near = index.nearest(space, vector, scopes, asked);
    const shown = near.filter(({ key }) => segments.some((segment) => segment.placeOf(key) >= 0));
    const isAll = near.length < asked || asked === NEAREST_LIMIT;
    if (isAll || shown.length >= limit) return shown.slice(0, limit);
  }
}
