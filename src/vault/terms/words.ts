import { stemmer } from "stemmer";

export { isStopWord } from "./stop-words.ts";

/** A run of letters and digits. Scripts without spaces form a single run. */
const RUN = /[\p{L}\p{N}]+/gu;
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;
const UNSPACED_PARTS =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]+|[^\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]+/gu;
const PLAIN = /^[\0-\x7f]*$/;
const MARKS = /\p{M}/gu;
/**
 * Normalising takes quadratic time in a run of combining marks: 100,000 took 18 seconds. No word has more than a few.
 * The last two characters become marks when normalised.
 */
const MARK_RUN = /([\p{M}\uff9e\uff9f]{8})[\p{M}\uff9e\uff9f]+/gu;

/**
 * The words of the text, in order, in lower case and without accents. Text without spaces (Chinese, Japanese, Thai …)
 * is split into characters and pairs of characters.
 */
export function wordsOf(text: string): string[] {
  const lower = text.toLowerCase();
  // Lower case again: decomposition may produce capitals (𝐀, ℡).
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

/**
 * Maximum number of words whose terms are cached: stemming one takes 1 µs, and a collection repeats some ten thousand
 * words.
 */
const CACHE_LIMIT = 50_000;
/** Maximum length of a word that is cached: a run of a thousand letters is unlikely to repeat. */
const CACHED_LENGTH = 64;
const terms = new Map<string, number>();

/**
 * A copy of the string with its own memory. A substring keeps the whole text in memory as long as it lives: thousands
 * of cached words retained as many documents.
 */
export function detached(word: string): string {
  return Buffer.from(word, "utf16le").toString("utf16le");
}

/** A word's term: a 53-bit number computed from its stem (Porter 1980, like FTS5's `porter`). */
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
 * A 53-bit hash from two FNV-1a hashes with murmur3's final mix. Indexes contain these hashes in place of words.
 * Among 100,000 different terms, the chance of any collision is one in two million.
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
