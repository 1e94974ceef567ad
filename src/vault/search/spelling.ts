import { stemmer } from "stemmer";
import { detached, hash53, isStopWord } from "../terms/words.ts";

const LETTERS = "abcdefghijklmnopqrstuvwxyz";
/** Shorter words are one edit away from too many others, and longer ones are not words. */
const SHORTEST = 4;
const LONGEST = 24;
const CORRECTABLE = /^[a-z]+$/;
const NONE = new Float64Array(0);
/**
 * Maximum number of words whose neighbours are cached, 4 kB each: stemming them all takes 0.5 ms, and questions
 * repeat words.
 */
const CACHE_LIMIT = 1_024;
const remembered = new Map<string, Float64Array>();

/**
 * All spellings one edit away from a word: a letter deleted, two swapped, one replaced, one inserted (Damerau 1964;
 * generated as by Norvig 2007). About 54 for each letter; none for anything but a plain word.
 */
export function* spellingsNear(word: string): Generator<string> {
  if (isCorrectable(word)) yield* edits(word);
}

/** The terms of all those spellings, ascending, without duplicates. */
export function termsNear(word: string): Float64Array {
  if (!isCorrectable(word)) return NONE;
  const known = remembered.get(word);
  if (known) return known;
  const terms = new Set<number>();
  for (const spelling of edits(word)) {
    const stem = stemmer(spelling);
    // A stop word is not matched through its stem either: "nothing" is one edit from "notting", whose stem is "not".
    if (stem.length < 2 || isStopWord(spelling) || isStopWord(stem)) continue;
    // Not by `termOf`: hundreds of spellings that are not words would evict real words from its cache.
    terms.add(hash53(stem));
  }
  const near = Float64Array.from(terms).sort();
  if (remembered.size >= CACHE_LIMIT) remembered.clear();
  remembered.set(detached(word), near);
  return near;
}

function isCorrectable(word: string): boolean {
  return word.length >= SHORTEST && word.length <= LONGEST && CORRECTABLE.test(word);
}

function* edits(word: string): Generator<string> {
  for (let at = 0; at <= word.length; at++) {
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
