import type { IndexReader, Reach } from "../index-reader.ts";
import { documentOf } from "../rows/keys.ts";
import { LexicalRanking } from "./lexical-ranking.ts";
import { byScore, type Placed, type Scored } from "./top-k.ts";

/** sqlite-vec answers no more at once. */
const NEAREST_LIMIT = 4_096;

/**
 * What vectors count for beside words. Hashed spellings only mend what words miss: 0.2 (nDCG@10 on two collections, design
 * section 3). A model's vectors are worth as much as words.
 */
const LEXICAL_WEIGHT = 0.2;
const MODEL_WEIGHT = 0.5;

/** Vectors of passages, as a search asks for them. Similarities are cosines. */
export interface VectorSource {
  /** What its similarities count for in hybrid search, of one; words count for the rest. */
  readonly weight: number;
  /** It knows what a text means, and not only how it is spelled. */
  readonly isModel: boolean;
  /** Of these passages, by their keys; those without a vector are left out. */
  similarities(passages: readonly Placed[]): Map<number, number>;
  /** The nearest passages of the boundary, best first; of the documents in `only` where that is given. */
  nearest(limit: number, only: ReadonlySet<number> | null): Scored[];
}

/** `builtin/lexical`: compared by the rounded copies in the segments. The nearest are put in order by the exact vectors. */
export function lexicalSource(
  index: IndexReader,
  space: number,
  vector: Float32Array,
  reach: Reach,
): VectorSource {
  const ranking = new LexicalRanking(vector, reach.segments);
  return {
    weight: LEXICAL_WEIGHT,
    isModel: false,
    similarities: (passages) => new Map(passages.map(({ key, at }) => [key, ranking.similarity(at)])),
    nearest(limit, only) {
      const near = ranking.best(limit, only);
      // The others are there to take the place of what is folded: none of them comes among the first by rounding alone.
      const first = near.slice(0, Math.ceil(limit / 2));
      const keys = first.map(({ key }) => key);
      const exact = index.similarities(space, vector, keys);
      const better = first.map((passage) => ({ ...passage, score: exact.get(passage.key) ?? passage.score }));
      return [...better, ...near.slice(first.length)].sort(byScore);
    },
  };
}

/** A model's vectors, in sqlite-vec's table: a search in the partition of each scope. */
export function modelSource(
  index: IndexReader,
  space: number,
  vector: Float32Array,
  reach: Reach,
): VectorSource {
  const similarities = (keys: readonly number[]) => index.similarities(space, vector, keys);
  return {
    weight: MODEL_WEIGHT,
    isModel: true,
    similarities: (passages) => similarities(passages.map(({ key }) => key)),
    nearest(limit, only) {
      if (only === null) return nearestShown(index, space, vector, reach, limit);
      // Every passage of the filtered documents is compared, so that a rare value is found however far away it lies.
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
 * A document's vectors are in the table before it is shown, and still after it is hidden: only passages that a segment
 * holds count. Where others took their places among the nearest, more are asked for.
 */
function nearestShown(
  index: IndexReader,
  space: number,
  vector: Float32Array,
  { scopes, segments }: Reach,
  limit: number,
): Scored[] {
  for (let asked = limit; ; asked = Math.min(asked * 4, NEAREST_LIMIT)) {
    const near = index.nearest(space, vector, scopes, asked);
    const shown = near.filter(({ key }) => segments.some((segment) => segment.placeOf(key) >= 0));
    const isAll = near.length < asked || asked === NEAREST_LIMIT;
    if (isAll || shown.length >= limit) return shown.slice(0, limit);
  }
}
