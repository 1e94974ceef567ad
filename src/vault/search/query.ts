import { stemmer } from "stemmer";
import type { Segment } from "../segments/segment.ts";
import { estimatePlace, placeNear } from "../segments/sorted.ts";
import { hash53, isStopWord, termOf, wordsOf } from "../terms/words.ts";
import { spellingsNear, termsNear } from "./spelling.ts";

/** Maximum number of distinct words of a question that are looked up, even if a whole page is pasted. */
const WORD_LIMIT = 256;
/** Maximum number of UTF-16 code units of a question that are read. */
const LENGTH_LIMIT = 16_384;
/** Maximum number of unknown words that are corrected, at about 400 look-ups in each segment for each word. */
const CORRECTION_LIMIT = 8;
const SPELLINGS = 3;
/** The weight of a corrected word relative to an exact one: nDCG@10 measured with typing errors. */
const CORRECTION_WEIGHT = 0.8;

export interface QuestionTerm {
  readonly term: number;
  readonly weight: number;
  /** Number of passages inside the boundary that contain it; at least one. */
  readonly count: number;
  /** Its postings in each segment: the index of the first, and of the one after the last. */
  readonly from: Int32Array;
  readonly to: Int32Array;
}

export interface Question {
  /** In their original form, for vectors. */
  readonly words: readonly string[];
  readonly terms: readonly QuestionTerm[];
  /** Words unknown within the boundary, and the terms used instead. */
  readonly corrected: ReadonlyMap<string, readonly number[]>;
}

/**
 * The terms of a question that these segments contain. Stop words are left out if there are other words. An unknown
 * word is replaced by the similar words that occur in most passages.
 */
export function readQuestion(text: string, segments: readonly Segment[]): Question {
  const words = wordsOf(text.slice(0, LENGTH_LIMIT));
  const telling = words.filter((word) => !isStopWord(word));
  const terms = new Map<number, QuestionTerm>();
  const corrected = new Map<string, readonly number[]>();
  let corrections = 0;
  for (const word of new Set((telling.length > 0 ? telling : words).slice(0, WORD_LIMIT))) {
    const term = termOf(word);
    const found = findIn(segments, term);
    if (found.count > 0) terms.set(term, { term, weight: 1, ...found });
    else if (corrections < CORRECTION_LIMIT) {
      corrections += 1;
      const meant = correct(word, segments);
      if (meant.length > 0) {
        corrected.set(
          word,
          meant.map(({ term: near }) => near),
        );
      }
      const weight = CORRECTION_WEIGHT / Math.sqrt(meant.length);
      for (const { term: near } of meant) {
        if (!terms.has(near)) terms.set(near, { term: near, weight, ...findIn(segments, near) });
      }
    }
  }
  return { words, terms: [...terms.values()], corrected };
}

/**
 * A term's postings in these segments. All places are estimated first, because the processor can then wait for the
 * memory of several segments at a time.
 */
function findIn(segments: readonly Segment[], term: number): Pick<QuestionTerm, "count" | "from" | "to"> {
  const from = new Int32Array(segments.length);
  const to = new Int32Array(segments.length);
  for (let index = 0; index < segments.length; index++) {
    from[index] = estimatePlace((segments[index] as Segment).terms, term);
  }
  let count = 0;
  for (let index = 0; index < segments.length; index++) {
    const { terms, offsets } = segments[index] as Segment;
    const at = placeNear(terms, term, from[index] as number);
    const first = at < 0 ? 0 : (offsets[at] as number);
    const end = at < 0 ? 0 : (offsets[at + 1] as number);
    from[index] = first;
    to[index] = end;
    count += end - first;
  }
  return { count, from, to };
}

type SpellingMatch = Pick<QuestionTerm, "term" | "count">;

function correct(word: string, segments: readonly Segment[]): readonly SpellingMatch[] {
  const near = termsNear(word);
  if (near.length === 0) return [];
  const counts = new Map<number, number>();
  for (const segment of segments) segment.countAll(near, counts);
  return [...counts]
    .map(([term, count]) => ({ term, count }))
    .sort((left, right) => right.count - left.count || left.term - right.term)
    .slice(0, SPELLINGS);
}

/** The corrections in readable form. Only for `explain`: it costs 0.5 ms. */
export function correctionsOf({ corrected }: Question): Readonly<Record<string, readonly string[]>> {
  return Object.fromEntries([...corrected].map(([word, terms]) => [word, spell(word, terms)]));
}

function spell(word: string, terms: readonly number[]): readonly string[] {
  const spelled = new Map<number, string>();
  for (const spelling of spellingsNear(word)) {
    if (isStopWord(spelling)) continue;
    const term = hash53(stemmer(spelling));
    const known = spelled.get(term);
    // The stem of "delivery" is "deliveri", which nobody writes.
    if (known === undefined || (known.endsWith("i") && spelling.endsWith("y"))) spelled.set(term, spelling);
  }
  return terms.flatMap((term) => spelled.get(term) ?? []);
}
