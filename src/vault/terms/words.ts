import { stemmer } from "stemmer";

export { isStopWord } from "./stop-words.ts";

/** Letters and digits of one word; a script that is written without spaces makes one run of it all. */
const RUN = /[\p{L}\p{N}]+/gu;
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;
const UNSPACED_PARTS =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]+|[^\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]+/gu;
const PLAIN = /^[\0-\x7f]*$/;
const MARKS = /\p{M}/gu;
/**
 * Normalising takes the square of a run of marks: 100,000 of them took 18 seconds. No word has more than a few. The last two
 * become marks by it.
 */
const MARK_RUN = /([\p{M}\uff9e\uff9f]{8})[\p{M}\uff9e\uff9f]+/gu;

/**
 * The words of a text, in order: lower case, without accents. What is written without spaces (Chinese, Japanese, Thai …)
 * becomes its characters and its pairs of them.
 */
export function wordsOf(text: string): string[] {
  const lower = text.toLowerCase();
  // Lower case again: what is taken apart may hold capitals (𝐀, ℡).
  const folded = PLAIN.test(lower)
    ? lower
    : lower.replace(MARK_RUN, "$1").normalize("NFKD").toLowerCase().replace(MARKS, "").normalize("NFC");
  const words: string[] = folded.match(RUN) ?? [];
  return UNSPACED.test(folded) ? words.flatMap(splitUnspaced) : words;
}

function splitUnspaced(run: string): string[] {
  if (!UNSPACED.test(run)) return [run];
  const words: string[] = [];
  for (const part of run.match(UNSPACED_PARTS) ?? []) {
    if (!UNSPACED.test(part)) {
      words.push(part);
      continue;
    }
    const characters = [...part];
    for (const [index, character] of characters.entries()) {
      words.push(character);
      const next = characters[index + 1];
      if (next !== undefined) words.push(character + next);
    }
  }
  return words;
}

/** Words whose terms are remembered: stemming one costs 1 µs, and a collection repeats a few ten thousand. */
const CACHE_LIMIT = 50_000;
/** A run of a thousand letters is no word that comes back. */
const CACHED_LENGTH = 64;
const terms = new Map<string, number>();

/**
 * The same string in memory of its own. A word that was cut out of a text keeps the whole text in memory for as long as it
 * is remembered itself: thousands of remembered words kept as many documents.
 */
export function detached(word: string): string {
  return Buffer.from(word, "utf16le").toString("utf16le");
}

/** The term of a word: a number of 53 bits made from its stem (Porter 1980, as FTS5's `porter`). */
export function termOf(word: string): number {
  const known = terms.get(word);
  if (known !== undefined) return known;
  const term = hash53(stemmer(word));
  if (word.length > CACHED_LENGTH) return term;
  if (terms.size >= CACHE_LIMIT) terms.clear();
  terms.set(detached(word), term);
  return term;
}

/**
 * 53 bits of two FNV-1a hashes with a final mix (murmur3's): an index holds these in place of words. Among 100,000
 * different terms the chance that any two are taken for each other is one in two million.
 */
export function hash53(text: string): number {
  let low = 0x811c9dc5;
  let high = 0x01000193;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    low = Math.imul(low ^ unit, 0x01000193);
    high = Math.imul(high ^ unit, 0x85ebca6b) ^ (high >>> 13);
  }
  return (mix(high) & 0x1fffff) * 0x1_0000_0000 + mix(low);
}

function mix(value: number): number {
  let mixed = value ^ (value >>> 16);
  mixed = Math.imul(mixed, 0x85ebca6b);
  mixed ^= mixed >>> 13;
  mixed = Math.imul(mixed, 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
