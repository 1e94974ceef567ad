import { stemmer } from "stemmer";
import { hash53, isStopWord } from "./words.ts";

const LETTERS = "abcdefghijklmnopqrstuvwxyz";
/** Shorter words are one edit away from too many others, longer ones are no words. */
const SHORTEST = 4;
const LONGEST = 24;
const CORRECTABLE = /^[a-z]+$/;
const NONE = new Float64Array(0);
/** Words whose neighbours are remembered, 4 kB each: stemming them all takes 0.5 ms, and people ask with the same words. */
const CACHE_LIMIT = 1_024;
const remembered = new Map<string, Float64Array>();

/**
 * Every spelling that is one slip of the fingers away from a word: a letter left out, two swapped, one for another, one too
 * many (Damerau 1964; generated as by Norvig 2007). Some 54 for each letter; none for a word that is no plain word.
 */
export function* spellingsNear(word: string): Generator<string> {
  if (isCorrectable(word)) yield* edits(word, 0);
}

/**
 * The terms of all those spellings, ascending, each once. The stem ends some letters before its word: a slip well before
 * that end is made in the stem itself, which saves stemming three quarters of the spellings.
 */
export function termsNear(word: string): Float64Array {
  if (!isCorrectable(word)) return NONE;
  const known = remembered.get(word);
  if (known) return known;
  const near = makeTermsNear(word);
  if (remembered.size >= CACHE_LIMIT) remembered.clear();
  remembered.set(word, near);
  return near;
}

function makeTermsNear(word: string): Float64Array {
  const stem = stemmer(word);
  const terms = new Set<number>();
  // Endings are told by the letters around the place where they begin.
  const inside = Math.max(0, commonStart(word, stem) - 3);
  const take = (stemmed: string) => {
    if (stemmed.length >= 2 && !isStopWord(stemmed)) terms.add(hash53(stemmed));
  };
  for (const edited of edits(stem, 0, inside)) take(edited);
  for (const edited of edits(word, inside)) if (!isStopWord(edited)) take(stemmer(edited));
  return Float64Array.from(terms).sort();
}

function isCorrectable(word: string): boolean {
  return word.length >= SHORTEST && word.length <= LONGEST && CORRECTABLE.test(word);
}

function commonStart(word: string, stem: string): number {
  let length = 0;
  while (length < stem.length && word[length] === stem[length]) length += 1;
  return length;
}

/** Slips that begin at the places from `from` up to `to`, the end included where that is not given. */
function* edits(word: string, from: number, to = word.length + 1): Generator<string> {
  for (let at = from; at < to && at <= word.length; at++) {
    const before = word.slice(0, at);
    const rest = word.slice(at);
    if (rest.length > 0) yield before + rest.slice(1);
    if (rest.length > 1) yield before + rest[1] + rest[0] + rest.slice(2);
    for (const letter of LETTERS) {
      if (rest.length > 0) yield before + letter + rest.slice(1);
      yield before + letter + rest;
    }
  }
}
