import type { BoundarySegments, IndexReader } from "../index-reader.ts";
import type { FoundPassage, SearchAnswer, SearchMode, SearchRequest } from "../messages.ts";
import { lexicalVector } from "../terms/lexical.ts";
import { WordRanking } from "./bm25.ts";
import { type Candidate, fuse } from "./fuse.ts";
import { gather } from "./gather.ts";
import { correctionsOf, type Question, readQuestion } from "./query.ts";
import { lexicalSource, modelSource, type VectorSource } from "./vector-source.ts";

/** The number of candidate passages: at least this many, or this factor times the results requested. */
const POOL = 100;
const POOL_FOR_EACH = 4;
/** Runs one search on a single snapshot of the store. Reads nothing outside the request's boundary. */
export function search(index: IndexReader, request: SearchRequest): SearchAnswer {
  return index.snapshot(() => {
    const reach = index.reach(request.workspaceId, request.boundary);
    const question = readQuestion(request.query, reach.segments);
    const only = request.filter.length > 0 ? index.documentsWith(reach.scopes, request.filter) : null;
    const found = new Search(index, request, reach, question, only).run();
    return { ...found, corrected: request.explain ? correctionsOf(question) : {} };
  });
}

class Search {
  readonly #index: IndexReader;
  readonly #request: SearchRequest;
  readonly #reach: BoundarySegments;
  readonly #question: Question;
  readonly #only: ReadonlySet<number> | null;
  readonly #words: WordRanking;
  readonly #pool: number;

  constructor(
    index: IndexReader,
    request: SearchRequest,
    reach: BoundarySegments,
    question: Question,
    only: ReadonlySet<number> | null,
  ) {
    this.#index = index;
    this.#request = request;
    this.#reach = reach;
    this.#question = question;
    this.#only = only;
    this.#words = new WordRanking(question, reach.segments);
    this.#pool = Math.max(POOL, request.topK * POOL_FOR_EACH);
  }

  run(): { passages: FoundPassage[]; mode: SearchMode } {
    const vectors = this.#vectors();
    const mode = vectors === undefined ? "keyword" : this.#request.mode;
    const ranked = this.#aged(this.#rank(mode, vectors ?? null));
    return { passages: gather(this.#index, this.#request, ranked, mode), mode };
  }

  /** Null if the question has no vector (it contains no words); undefined if there are no vectors to search. */
  #vectors(): VectorSource | null | undefined {
    const { mode, vectors } = this.#request;
    if (mode === "keyword" || vectors === null) return undefined;
    if (vectors.vector) return modelSource(this.#index, vectors.space, vectors.vector, this.#reach);
    const vector = lexicalVector(this.#question.words);
    return vector && lexicalSource(this.#index, vectors.space, vector, this.#reach);
  }

  #rank(mode: SearchMode, vectors: VectorSource | null): Candidate[] {
    if (mode === "vector") {
      const near = vectors?.nearest(this.#pool, this.#only) ?? [];
      return near.map((scored) => ({
        ...scored,
        keyword: this.#words.scoreOf(scored.key),
        vector: scored.score,
        recency: null,
      }));
    }
    const byWords = this.#words.best(this.#pool, this.#only);
    if (mode === "keyword" || vectors === null) {
      return byWords.map((scored) => ({ ...scored, keyword: scored.score, vector: null, recency: null }));
    }
    const { topK } = this.#request;
    return fuse(byWords, this.#words, vectors, { topK, pool: this.#pool, only: this.#only });
  }

  /** Reduces the scores of older documents, if requested. */
  #aged(candidates: readonly Candidate[]): readonly Candidate[] {
    const { recency } = this.#request;
    if (recency === null) return candidates;
    const rows = this.#index.passages(candidates.map(({ key }) => key));
    return candidates
      .map((candidate) => {
        const age = Math.max(0, recency.now - (rows.get(candidate.key)?.updated_at ?? 0));
        const factor = 0.5 ** (age / recency.halfLifeMs);
        return { ...candidate, score: Math.max(0, candidate.score) * factor, recency: factor };
      })
      .sort(
        // A negative similarity becomes zero, and then newer documents come first.
        (left, right) => right.score - left.score || right.recency - left.recency || left.key - right.key,
      );
  }
}
