import { detached, hash53, isStopWord } from "./words.ts";

/**
 * `builtin/lexical`: represents text as the character n-grams of its words, hashed into a vector (the "hashing
 * trick", Weinberger et al. 2009). Texts with similar spelling are near each other, whatever their meaning: lexical,
 * never semantic.
 */
export const LEXICAL_DIMENSIONS = 256;
/** MUST change whenever the vectors change. The segments contain copies of them and must then be rebuilt. */
export const LEXICAL_SPACE = "builtin/lexical|256|3-5|1";

const SHORTEST = 3;
const LONGEST = 5;
/** Maximum number of letters of a word: a run of a thousand letters is not a word, and has a thousand n-grams. */
const WORD_LIMIT = 40;
/**
 * Maximum number of words whose n-grams are cached: a collection repeats some ten thousand words, and hashing one
 * takes about 3 µs.
 */
const CACHE_LIMIT = 20_000;
const grams = new Map<string, Float64Array>();

/** The text that makes up a passage's vector. */
export interface PassageWords {
  readonly title: readonly string[];
  /** Headings above the passage that do not occur in it. */
  readonly headings: readonly string[];
  readonly text: readonly string[];
}

/** Computes a passage's vector. The title counts twice. */
export function passageVector({ title, headings, text }: PassageWords): Float32Array | null {
  return lexicalVector([...title, ...title, ...headings, ...text]);
}

/** The unit vector of words; null if there is nothing to hash. */
export function lexicalVector(words: readonly string[]): Float32Array | null {
  const counts = new Map<number, number>();
  for (const word of words) {
    if (isStopWord(word)) continue;
    const hashes = gramsOf(word);
    for (let at = 0; at < hashes.length; at++) {
      const gram = hashes[at] as number;
      counts.set(gram, (counts.get(gram) ?? 0) + 1);
    }
  }
  const sums = new Float64Array(LEXICAL_DIMENSIONS);
  counts.forEach((count, gram) => {
    const place = gram % LEXICAL_DIMENSIONS;
    const sign = Math.floor(gram / LEXICAL_DIMENSIONS) % 2 === 0 ? 1 : -1;
    sums[place] = (sums[place] as number) + sign * Math.sqrt(count);
  });
  let square = 0;
  for (let at = 0; at < LEXICAL_DIMENSIONS; at++) square += (sums[at] as number) ** 2;
  if (square === 0) return null;
  const length = Math.sqrt(square);
  const vector = new Float32Array(LEXICAL_DIMENSIONS);
  for (let at = 0; at < LEXICAL_DIMENSIONS; at++) vector[at] = (sums[at] as number) / length;
  return vector;
}

function gramsOf(word: string): Float64Array {
  const known = grams.get(word);
  if (known) return known;
  const marked = `^${word.slice(0, WORD_LIMIT)}$`;
  const hashes: number[] = [];
  for (let size = SHORTEST; size <= LONGEST; size++) {
    for (let at = 0; at + size <= marked.length; at++) hashes.push(hash53(marked.slice(at, at + size)));
  }
  const made = Float64Array.from(hashes);
  if (word.length > WORD_LIMIT) return made;
  if (grams.size >= CACHE_LIMIT) grams.clear();
  grams.set(detached(word), made);
  return made;
}
