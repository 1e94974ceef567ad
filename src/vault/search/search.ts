import type { IndexState, IndexStore } from "../index-store.ts";
import type { FoundPassage, SearchAnswer, SearchMode, SearchRequest } from "../messages.ts";
import type { SegmentCache } from "../segments/segment-cache.ts";
import { lexicalVector } from "../terms/lexical.ts";
import { WordRanking } from "./bm25.ts";
import { type Candidate, Fusion } from "./fuse.ts";
import { gather } from "./gather.ts";
import { correctionsOf, type Question, readQuestion } from "./query.ts";
import { loadReach, type Reach } from "./reach.ts";
import { lexicalSource, modelSource, type VectorSource } from "./vector-source.ts";

/** The number of candidate passages: at least this many, or this factor times the results requested. */
const POOL = 100;
const POOL_FOR_EACH = 4;

/** Runs one search on one state of the store. Reads nothing outside the request's boundary. */
export function search(
  store: IndexStore,
  cache: SegmentCache,
  request: SearchRequest,
): Promise<SearchAnswer> {
  return store.read(async (state) => {
    const reach = await loadReach(state, cache, request);
    const question = readQuestion(request.query, reach.segments);
    const only = request.filter.length > 0 ? await state.documentsWith(reach.scopes, request.filter) : null;
    const found = await new Search(state, request, reach, question, only).run();
    return { ...found, corrected: request.explain ? correctionsOf(question) : {} };
  });
}

class Search {
  readonly #state: IndexState;
  readonly #request: SearchRequest;
  readonly #reach: Reach;
  readonly #question: Question;
  readonly #only: ReadonlySet<number> | null;
  readonly #words: WordRanking;
  readonly #pool: number;

  constructor(
    state: IndexState,
    request: SearchRequest,
    reach: Reach,
    question: Question,
    only: ReadonlySet<number> | null,
  ) {
    this.#state = state;
    this.#request = request;
    this.#reach = reach;
    this.#question = question;
    this.#only = only;
    this.#words = new WordRanking(question, reach.segments);
    this.#pool = Math.max(POOL, request.topK * POOL_FOR_EACH);
  }

  async run(): Promise<{ passages: FoundPassage[]; mode: SearchMode }> {
    const vectors = this.#vectors();
    const mode = vectors === undefined ? "keyword" : this.#request.mode;
    const ranked = await this.#aged(await this.#rank(mode, vectors ?? null));
    return { passages: await gather(this.#state, this.#request, ranked, mode), mode };
  }

  /** Null if the question has no vector (it contains no words); undefined if there are no vectors to search. */
  #vectors(): VectorSource | null | undefined {
    const { mode, vectors } = this.#request;
    if (mode === "keyword" || vectors === null) return undefined;
    const { space, vector: ofModel } = vectors;
    if (ofModel) return modelSource(this.#state, { space, vector: ofModel }, this.#reach);
    const vector = lexicalVector(this.#question.words);
    return vector && lexicalSource(this.#state, { space, vector }, this.#reach);
  }

  async #rank(mode: SearchMode, vectors: VectorSource | null): Promise<Candidate[]> {
    if (mode === "vector") {
      const near = (await vectors?.nearest(this.#pool, this.#only)) ?? [];
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
    const fusion = new Fusion(byWords, await vectors.similarities(byWords), vectors);
    const candidates = fusion.withoutOthers(this.#request.topK);
    return candidates ?? fusion.with(await vectors.nearest(this.#pool, this.#only), this.#words);
  }

  /** Reduces the scores of older documents, if requested. */
  async #aged(candidates: readonly Candidate[]): Promise<readonly Candidate[]> {
    const { recency } = this.#request;
    if (recency === null) return candidates;
    const times = await this.#state.updatedAt(candidates.map(({ key }) => key));
    return candidates
      .map((candidate) => {
        const age = Math.max(0, recency.now - (times.get(candidate.key) ?? 0));
        const factor = 0.5 ** (age / recency.halfLifeMs);
        return { ...candidate, score: Math.max(0, candidate.score) * factor, recency: factor };
      })
      .sort(
        // A negative similarity becomes zero, and then newer documents come first.
        (left, right) => right.score - left.score || right.recency - left.recency || left.key - right.key,
      );
  }
}
