import { documentOf } from "../rows/keys.ts";
import type { Segment } from "../segments/segment.ts";
import type { Question } from "./query.ts";
import { type ScoredAt, TopK } from "./top-k.ts";

/** BM25 (Robertson and Walker 1994). The usual parameters that did best on two collections together. */
const K1 = 1.2;
const B = 0.6;

/**
 * BM25 scores of every passage in these segments. The statistics (number of passages, lengths, document frequencies)
 * come only from these segments, so nothing outside the boundary affects any score.
 */
export class WordRanking {
  readonly #segments: readonly Segment[];
  readonly #scores: readonly Float64Array[];

  /** `room` returns an array of zeros, which repeated rankings may share. */
  constructor(
    question: Question,
    segments: readonly Segment[],
    room: (length: number) => Float64Array = (length) => new Float64Array(length),
  ) {
    this.#segments = segments;
    let passages = 0;
    let words = 0;
    for (const segment of segments) {
      passages += segment.keys.length;
      words += segment.words;
    }
    const all = room(passages);
    let from = 0;
    this.#scores = segments.map(({ keys }) => {
      const scores = all.subarray(from, from + keys.length);
      from += keys.length;
      return scores;
    });
    // K1 * (1 - B + B * length / average) as a linear function of length.
    const base = K1 * (1 - B);
    const slope = words === 0 ? 0 : (K1 * B * passages) / words;
    for (const { term, weight, count } of question.terms) {
      const idf = Math.log(1 + (passages - count + 0.5) / (count + 0.5));
      for (const [index, segment] of segments.entries()) {
        add(segment, this.#scores[index] as Float64Array, term, weight * idf * (K1 + 1), base, slope);
      }
    }
  }

  /** The best passages, within the documents in `only` if given. */
  best(limit: number, only: ReadonlySet<number> | null): ScoredAt[] {
    const best = new TopK(limit);
    let from = 0;
    for (const [index, { keys }] of this.#segments.entries()) {
      const scores = this.#scores[index] as Float64Array;
      for (let place = 0; place < scores.length; place++) {
        const score = scores[place] as number;
        if (score === 0 || score < best.threshold) continue;
        const key = keys[place] as number;
        if (only === null || only.has(documentOf(key))) best.offer(key, score, from + place);
      }
      from += keys.length;
    }
    return best.sorted();
  }

  /** Zero for a passage that shares no word with the question. */
  scoreOf(key: number): number {
    for (const [index, segment] of this.#segments.entries()) {
      const place = segment.placeOf(key);
      if (place >= 0) return (this.#scores[index] as Float64Array)[place] as number;
    }
    return 0;
  }
}

function add(
  segment: Segment,
  scores: Float64Array,
  term: number,
  weight: number,
  base: number,
  slope: number,
): void {
  const at = segment.find(term);
  if (at < 0) return;
  const { lengths, passages, frequencies } = segment;
  const end = segment.offsets[at + 1] as number;
  for (let posting = segment.offsets[at] as number; posting < end; posting++) {
    const place = passages[posting] as number;
    const frequency = frequencies[posting] as number;
    const norm = base + slope * (lengths[place] as number);
    scores[place] = (scores[place] as number) + (weight * frequency) / (frequency + norm);
  }
}
