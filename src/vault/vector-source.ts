import { byScore, type Scored } from "./best.ts";
import type { IndexReader, Reach } from "./index-reader.ts";
import { documentOf } from "./keys.ts";
import { SpellingRanking } from "./rank-spelling.ts";

/** Vectors of passages, as a search asks for them. Similarities are cosines. */
export interface VectorSource {
  /** Of these passages, by their keys; those without a vector are left out. */
  similarities(passages: readonly Scored[]): Map<number, number>;
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
  const ranking = new SpellingRanking(vector, reach.segments);
  return {
    similarities: (passages) => new Map(passages.map(({ key, at }) => [key, ranking.similarity(at)])),
    nearest(limit, only) {
      const near = ranking.best(limit, only);
      const exact = index.similarities(
        space,
        vector,
        near.map(({ key }) => key),
      );
      return near
        .map((passage) => ({ ...passage, score: exact.get(passage.key) ?? passage.score }))
        .sort(byScore);
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
    similarities: (passages) => similarities(passages.map(({ key }) => key)),
    nearest(limit, only) {
      if (only === null) return index.nearest(space, vector, reach.scopes, limit);
      // Every passage of the filtered documents is compared, so that a rare value is found however far away it lies.
      const keys = reach.segments.flatMap((segment) =>
        Array.from(segment.keys).filter((key) => only.has(documentOf(key))),
      );
      return [...similarities(keys)]
        .map(([key, score]) => ({ key, score, at: -1 }))
        .sort(byScore)
        .slice(0, limit);
    },
  };
}
