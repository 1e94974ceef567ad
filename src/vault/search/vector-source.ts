import type { IndexState, SpaceVector } from "../index-store.ts";
import { documentOf } from "../rows/keys.ts";
import { LexicalRanking } from "./lexical-ranking.ts";
import type { Reach } from "./reach.ts";
import { byScore, type Scored, type ScoredAt } from "./top-k.ts";

/**
 * The weight of vectors relative to words. Spelling vectors only supplement words: 0.2 (nDCG@10 on two collections,
 * design section 3). A model's vectors weigh as much as words.
 */
const LEXICAL_WEIGHT = 0.2;
const MODEL_WEIGHT = 0.5;

export interface VectorKind {
  /** Its weight in hybrid search, from 0 to 1. Words have the rest. */
  readonly weight: number;
  /** Whether the vectors reflect meaning rather than only spelling. */
  readonly isModel: boolean;
}

/** Vectors of passages, as needed by a search. Similarities are cosines. */
export interface VectorSource extends VectorKind {
  /** Similarities by passage key, without passages that have no vector. */
  similarities(passages: readonly ScoredAt[]): Promise<Map<number, number>>;
  /** The nearest passages of the boundary, best first, within the documents in `only` if given. */
  nearest(limit: number, only: ReadonlySet<number> | null): Promise<readonly Scored[]>;
}

/**
 * `builtin/lexical`: compares the quantised copies in the segments, and orders the nearest by their exact vectors.
 */
export function lexicalSource(state: IndexState, question: SpaceVector, { segments }: Reach): VectorSource {
  const ranking = new LexicalRanking(question.vector, segments);
  return {
    weight: LEXICAL_WEIGHT,
    isModel: false,
    similarities: async (passages) => new Map(passages.map(({ key, at }) => [key, ranking.similarity(at)])),
    async nearest(limit, only) {
      const near = ranking.best(limit, only);
      // The rest only replaces near-duplicates: quantisation alone does not move any of it to the front.
      const first = near.slice(0, Math.ceil(limit / 2));
      const keys = first.map(({ key }) => key);
      const exact = await state.similarities(question, keys);
      const better = first.map((passage) => ({ ...passage, score: exact.get(passage.key) ?? passage.score }));
      return [...better, ...near.slice(first.length)].sort(byScore);
    },
  };
}

/** A model's vectors, which the store compares. */
export function modelSource(
  state: IndexState,
  question: SpaceVector,
  { scopes, segments }: Reach,
): VectorSource {
  const isShown = (key: number) => segments.some((segment) => segment.placeOf(key) >= 0);
  return {
    weight: MODEL_WEIGHT,
    isModel: true,
    similarities: (passages) =>
      state.similarities(
        question,
        passages.map(({ key }) => key),
      ),
    async nearest(limit, only) {
      if (only === null) return state.nearest(question, scopes, limit, isShown);
      // Every passage of the filtered documents is compared, so that rare values are found however distant they are.
      const keys = segments.flatMap((segment) =>
        Array.from(segment.keys).filter((key) => only.has(documentOf(key))),
      );
      return state.nearestOf(question, scopes, limit, keys);
    },
  };
}
