import type { IndexReader, PassageRow, Reach } from "../index-reader.ts";
import type { FoundPassage, Metadata, SearchAnswer, SearchMode, SearchRequest } from "../messages.ts";
import { documentOf } from "../rows/keys.ts";
import { lexicalVector } from "../terms/lexical.ts";
import { WordRanking } from "./bm25.ts";
import { Folder } from "./near-duplicates.ts";
import { correctionsOf, type Question, readQuestion } from "./query.ts";
import { byScore, type Scored } from "./top-k.ts";
import { lexicalSource, modelSource, type VectorSource } from "./vector-source.ts";

/** Passages that are looked at more closely: at least so many, and so many for each that is asked for. */
const POOL = 100;
const POOL_FOR_EACH = 4;
/**
 * What words and vectors count for. Hashed spellings only mend what words miss: 0.8 and 0.2 (nDCG@10 on two collections,
 * design section 3). A model's vectors are worth as much as words; their similarities are close together, so that they are
 * stretched over what was found.
 */
const LEXICAL_WEIGHT = 0.2;
const MODEL_WEIGHT = 0.5;
/**
 * How near a passage that shares no word with the question comes by its spelling: 0.42 at most in 1.3 million pairs of two
 * collections, with and without typing errors. Results that are better than such a one spare the search through all vectors.
 */
const STRANGER = 0.5;
/** What is nearer than chance makes two texts (of 256 numbers: 0.06 in two of three) where they share no word at all. */
const CHANCE = 0.15;
/** Passages read at once while results are gathered. */
const BATCH = 12;

interface Candidate extends Omit<Scored, "at"> {
  readonly keyword: number;
  readonly vector: number | null;
  readonly recency: number | null;
}

let scratch = new Float64Array(0);

/** One search at a time, in the same room: 100,000 scores anew for each grew the process by 100 MB before they were freed. */
function room(length: number): Float64Array {
  if (scratch.length < length) scratch = new Float64Array(length * 2);
  return scratch.subarray(0, length).fill(0);
}

/** One search, on one state of the store. Nothing outside of the request's boundary is read. */
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
  readonly #reach: Reach;
  readonly #question: Question;
  readonly #only: ReadonlySet<number> | null;
  readonly #words: WordRanking;
  readonly #pool: number;

  constructor(
    index: IndexReader,
    request: SearchRequest,
    reach: Reach,
    question: Question,
    only: ReadonlySet<number> | null,
  ) {
    this.#index = index;
    this.#request = request;
    this.#reach = reach;
    this.#question = question;
    this.#only = only;
    this.#words = new WordRanking(question, reach.segments, room);
    this.#pool = Math.max(POOL, request.topK * POOL_FOR_EACH);
  }

  run(): { passages: FoundPassage[]; mode: SearchMode } {
    const vectors = this.#vectors();
    const mode = vectors === undefined ? "keyword" : this.#request.mode;
    const ranked = this.#aged(this.#rank(mode, vectors ?? null));
    return { passages: this.#gather(ranked, mode), mode };
  }

  /** Null where the question has no vector (it has no words), undefined where there are no vectors to search. */
  #vectors(): VectorSource | null | undefined {
    const { mode, vectors } = this.#request;
    if (mode === "keyword" || vectors === null || !this.#index.hasVectors) return undefined;
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
    return this.#fuse(byWords, vectors);
  }

  #fuse(byWords: readonly Scored[], vectors: VectorSource): Candidate[] {
    const isModel = this.#request.vectors?.vector !== null;
    const weight = isModel ? MODEL_WEIGHT : LEXICAL_WEIGHT;
    const words = new Map(byWords.map(({ key, score }) => [key, score]));
    const highest = byWords[0]?.score ?? 0;
    const similar = vectors.similarities(byWords);
    let fused = fuse(words, similar, highest, weight, isModel);
    // What words have not found can only get among the results where these are weak. With a model's vectors it always can.
    const last = fused[this.#request.topK - 1];
    if (isModel || last === undefined || last.score < weight * STRANGER) {
      for (const { key, score } of vectors.nearest(this.#pool, this.#only)) {
        similar.set(key, score);
        if (!words.has(key)) words.set(key, this.#words.scoreOf(key));
      }
      fused = fuse(words, similar, highest, weight, isModel);
    }
    return isModel ? fused : fused.filter(({ keyword, vector }) => keyword > 0 || (vector ?? 0) > CHANCE);
  }

  /** Older documents count less, where that is asked for. */
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
      .sort(byScore);
  }

  #gather(candidates: readonly Candidate[], mode: SearchMode): FoundPassage[] {
    const { topK, maxCharacters } = this.#request;
    const folder = new Folder(topK);
    const offered: { candidate: Candidate; row: PassageRow; text: string }[] = [];
    for (let from = 0; from < candidates.length && !folder.isFull; from += BATCH) {
      const batch = candidates.slice(from, from + BATCH);
      const rows = this.#index.passages(batch.map(({ key }) => key));
      for (const candidate of batch) {
        if (folder.isFull) break;
        const row = rows.get(candidate.key);
        if (!row) throw new Error("a passage of the index is not in the store");
        const document = documentOf(candidate.key);
        const text = this.#index.text(document, row.start, row.end);
        offered.push({ candidate, row, text });
        folder.offer({ document, start: row.start, end: row.end, text });
      }
    }
    const ranks = this.#request.explain ? ranksOf(candidates) : null;
    const found: FoundPassage[] = [];
    let left = maxCharacters ?? Number.POSITIVE_INFINITY;
    for (const { index, duplicates } of folder.chosen()) {
      const item = offered[index];
      if (!item) continue;
      const text = withinBudget(item.text, left, found.length === 0);
      if (text === "") break;
      left -= text.length;
      found.push({
        ...view(item.row, text),
        score: item.candidate.score,
        explain: ranks && {
          ...ranks(item.candidate, mode),
          recency: item.candidate.recency,
          duplicates: duplicates.map((place) => offered[place]?.row.chunk_id ?? ""),
        },
      });
    }
    return found;
  }
}

function fuse(
  words: ReadonlyMap<number, number>,
  similar: ReadonlyMap<number, number>,
  highest: number,
  weight: number,
  stretch: boolean,
): Candidate[] {
  const [low, high] = stretch ? rangeOf(similar.values()) : [0, 1];
  return [...words]
    .map(([key, keyword]) => {
      const vector = similar.get(key) ?? null;
      const near = vector === null ? 0 : high <= low ? 1 : Math.max(0, (vector - low) / (high - low));
      const share = highest === 0 ? 0 : keyword / highest;
      return { key, keyword, vector, recency: null, score: (1 - weight) * share + weight * near };
    })
    .sort(byScore);
}

function rangeOf(values: Iterable<number>): [low: number, high: number] {
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return [low, high];
}

/** Whole passages as long as they fit. The first one is cut where it alone is too long, so that there is an answer. */
function withinBudget(text: string, left: number, isFirst: boolean): string {
  if (text.length <= left) return text;
  if (!isFirst) return "";
  const cut = text.slice(0, left);
  const space = cut.search(/\s\S*$/);
  return (space > left / 2 ? cut.slice(0, space) : cut).replace(/[\ud800-\udbff]$/, "");
}

function view(row: PassageRow, text: string): Omit<FoundPassage, "score" | "explain"> {
  return {
    documentId: row.document_id,
    chunkId: row.chunk_id,
    title: row.title,
    text,
    scope: row.scope,
    sourceUri: row.source_uri,
    start: row.start,
    end: row.start + text.length,
    metadata: JSON.parse(row.metadata) as Metadata,
  };
}

/** Where each candidate stands by words alone and by vectors alone. */
function ranksOf(candidates: readonly Candidate[]) {
  const rank = (part: "keyword" | "vector") => {
    const held = candidates.filter((candidate) => (candidate[part] ?? 0) > 0);
    const order = held.sort((left, right) => (right[part] ?? 0) - (left[part] ?? 0) || left.key - right.key);
    return new Map(order.map(({ key }, index) => [key, index + 1]));
  };
  const keyword = rank("keyword");
  const vector = rank("vector");
  return (candidate: Candidate, mode: SearchMode) => ({
    keyword:
      mode === "vector" ? null : { rank: keyword.get(candidate.key) ?? null, score: candidate.keyword },
    vector:
      candidate.vector === null ? null : { rank: vector.get(candidate.key) ?? null, score: candidate.vector },
  });
}
