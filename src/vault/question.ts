import { stemmer } from "stemmer";
import type { Segment } from "./segment.ts";
import { spellingsNear } from "./typos.ts";
import { hash53, isStopWord, termOf, wordsOf } from "./words.ts";

/** Different words of a question that are looked up: a whole page pasted as a question costs no more than this. */
const WORD_LIMIT = 256;
/** Unknown words whose neighbours in spelling are looked for: some 450 look-ups in each segment for each of them. */
const CORRECTION_LIMIT = 8;
const SPELLINGS = 3;
/** What a corrected word counts for, against one that was found as it stands: nDCG@10 with typing errors, measured. */
const CORRECTION_WEIGHT = 0.8;

export interface QuestionTerm {
  readonly term: number;
  readonly weight: number;
  /** Passages of the boundary that hold it; more than none. */
  readonly count: number;
}

export interface Question {
  /** As they stand in the question, for vectors. */
  readonly words: readonly string[];
  readonly terms: readonly QuestionTerm[];
  /** Words that the boundary does not know, and the spellings that were taken for them. */
  readonly corrected: Readonly<Record<string, readonly string[]>>;
}

/**
 * The terms of a question that these segments know. Stop words are left out where there are others. A word that none of
 * them knows counts as the words it may have been meant for, of which they know most passages.
 */
export function readQuestion(text: string, segments: readonly Segment[]): Question {
  const words = wordsOf(text);
  const telling = words.filter((word) => !isStopWord(word));
  const terms = new Map<number, QuestionTerm>();
  const corrected: Record<string, readonly string[]> = {};
  let corrections = 0;
  for (const word of new Set((telling.length > 0 ? telling : words).slice(0, WORD_LIMIT))) {
    const term = termOf(word);
    const count = countIn(segments, term);
    if (count > 0) terms.set(term, { term, weight: 1, count });
    else if (corrections < CORRECTION_LIMIT) {
      corrections += 1;
      const meant = correct(word, segments);
      if (meant.length > 0) corrected[word] = meant.map(({ spelling }) => spelling);
      for (const { term: near, count: held } of meant) {
        if (!terms.has(near)) {
          terms.set(near, { term: near, weight: CORRECTION_WEIGHT / Math.sqrt(meant.length), count: held });
        }
      }
    }
  }
  return { words, terms: [...terms.values()], corrected };
}

function countIn(segments: readonly Segment[], term: number): number {
  let count = 0;
  for (const segment of segments) count += segment.count(term);
  return count;
}

interface Meant {
  readonly spelling: string;
  readonly term: number;
  readonly count: number;
}

function correct(word: string, segments: readonly Segment[]): readonly Meant[] {
  const found = new Map<number, Meant>();
  for (const spelling of spellingsNear(word)) {
    const stem = stemmer(spelling);
    if (stem.length < 2 || isStopWord(spelling)) continue;
    // Not by `termOf`: hundreds of spellings that are no words would push the words out of its memory.
    const term = hash53(stem);
    if (found.has(term)) continue;
    const count = countIn(segments, term);
    if (count > 0) found.set(term, { spelling, term, count });
  }
  return [...found.values()]
    .sort((left, right) => right.count - left.count || left.term - right.term)
    .slice(0, SPELLINGS);
}
