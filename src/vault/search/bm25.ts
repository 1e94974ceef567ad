import { documentOf } from "../rows/keys.ts";
import { SEGMENT_LIMIT, type Segment } from "../segments/segment.ts";
import type { Question, QuestionTerm } from "./query.ts";
import { type ScoredAt, TopK } from "./top-k.ts";

/** BM25 (Robertson and Walker 1994). The usual parameters that did best on two collections together. */
const K1 = 1.2;
const B = 0.6;

/**
 * Scores of one segment's passages while it is ranked. Small enough for the nearest cache of a core: scores of all
 * 100,000 passages at a time took twice as long.
 */
const scores = new Float64Array(SEGMENT_LIMIT);
/** Whose scores they are, and of which of its segments. */
let scored = { ranking: 0, index: 0 };
let rankings = 0;

/**
 * BM25 scores of the passages in these segments. The statistics (number of passages, lengths, document frequencies)
 * come only from these segments, so nothing outside the boundary affects any score.
 */
export class WordRanking {
  readonly #segments: readonly Segment[];
  readonly #terms: readonly Pick<QuestionTerm, "weight" | "from" | "to">[];
  /** K1 * (1 - B + B * length / average) as a linear function of length. */
  readonly #base: number;
  readonly #slope: number;
  /** Distinguishes this ranking's `scores` from those of others. */
  readonly #id = ++rankings;
  /** Whether the segment that it scored last contains any of the terms. */
  #isAny = false;

  /** `question` MUST have been read for these segments. */
  constructor(question: Question, segments: readonly Segment[]) {
    this.#segments = segments;
    let passages = 0;
    let words = 0;
    for (const segment of segments) {
      passages += segment.keys.length;
      words += segment.words;
    }
    this.#base = K1 * (1 - B);
    this.#slope = words === 0 ? 0 : (K1 * B * passages) / words;
    this.#terms = question.terms.map(({ weight, count, from, to }) => {
      const idf = Math.log(1 + (passages - count + 0.5) / (count + 0.5));
      return { weight: weight * idf * (K1 + 1), from, to };
    });
  }

  /** The best passages, within the documents in `only` if given. */
  best(limit: number, only: ReadonlySet<number> | null): ScoredAt[] {
    const best = new TopK(limit);
    let from = 0;
    for (let index = 0; index < this.#segments.length; index++) {
      const segment = this.#segments[index] as Segment;
      if (this.#scoreAll(segment, index)) offerAll(segment, from, only, best);
      from += segment.keys.length;
    }
    return best.sorted();
  }

  /** Zero for a passage that shares no word with the question. */
  scoreOf(key: number): number {
    for (const [index, segment] of this.#segments.entries()) {
      const place = segment.placeOf(key);
      if (place >= 0) return this.#scoreAll(segment, index) ? (scores[place] as number) : 0;
    }
    return 0;
  }

  /** Computes `scores` of a segment. False if it contains none of the terms. */
  #scoreAll(segment: Segment, index: number): boolean {
    if (scored.ranking === this.#id && scored.index === index) return this.#isAny;
    scored = { ranking: this.#id, index };
    let isAny = false;
    for (const { weight, from, to } of this.#terms) {
      const first = from[index] as number;
      const end = to[index] as number;
      if (first === end) continue;
      if (!isAny) scores.fill(0, 0, segment.keys.length);
      isAny = true;
      add(segment, first, end, weight, this.#base, this.#slope);
    }
    this.#isAny = isAny;
    return isAny;
  }
}

function add(
  { lengths, passages, frequencies }: Segment,
  first: number,
  end: number,
  weight: number,
  base: number,
  slope: number,
): void {
  for (let posting = first; posting < end; posting++) {
    const place = passages[posting] as number;
    const frequency = frequencies[posting] as number;
    const norm = base + slope * (lengths[place] as number);
    scores[place] = (scores[place] as number) + (weight * frequency) / (frequency + norm);
  }
}

/**
 * Offers the passages of a segment, whose `scores` have been computed. `from`: the index of its first among all. Most
 * passages fail the one comparison, which the processor learns: asking first whether a score is 0 took 300 µs more for
 * 100,000 passages.
 */
function offerAll({ keys }: Segment, from: number, only: ReadonlySet<number> | null, best: TopK): void {
  let least = Math.max(best.threshold, Number.MIN_VALUE);
  for (let place = 0; place < keys.length; place++) {
    const score = scores[place] as number;
    if (score < least) continue;
    const key = keys[place] as number;
    if (only !== null && !only.has(documentOf(key))) continue;
    best.offer(key, score, from + place);
    least = Math.max(best.threshold, Number.MIN_VALUE);
  }
}
