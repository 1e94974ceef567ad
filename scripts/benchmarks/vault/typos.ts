import type { Random } from "./random.ts";

/** Words of this many letters or more are mistyped. */
const LEAST_LETTERS = 4;
const CHANCE = 1 / 3;
const WORD = new RegExp(`[A-Za-z]{${LEAST_LETTERS},}`, "g");

/** The keys around each letter on a QWERTY keyboard. */
const NEIGHBOURS: Readonly<Record<string, string>> = {
  q: "wa",
  w: "qeas",
  e: "wrsd",
  r: "etdf",
  t: "ryfg",
  y: "tugh",
  u: "yihj",
  i: "uojk",
  o: "ipkl",
  p: "ol",
  a: "qwsz",
  s: "awedxz",
  d: "serfcx",
  f: "drtgvc",
  g: "ftyhbv",
  h: "gyujnb",
  j: "huikmn",
  k: "jiolm",
  l: "kop",
  z: "asx",
  x: "zsdc",
  c: "xdfv",
  v: "cfgb",
  b: "vghn",
  n: "bhjm",
  m: "njk",
};

const EDITS = [swap, drop, double, replace] as const;

/**
 * Adds typing errors: one edit in about every third word of four ASCII letters or more, and in at least one word if
 * there is any. An edit swaps two adjacent letters, drops a letter, doubles one, or replaces it with a neighbouring
 * key. Kind and place are chosen uniformly.
 */
export function mistype(text: string, random: Random): string {
  const words = [...text.matchAll(WORD)];
  if (words.length === 0) return text;
  const chosen = new Set(words.filter(() => random.next() < CHANCE));
  if (chosen.size === 0) chosen.add(random.pick(words));
  let result = "";
  let end = 0;
  for (const word of words) {
    const written = chosen.has(word) ? mistypeWord(word[0], random) : word[0];
    result += text.slice(end, word.index) + written;
    end = word.index + word[0].length;
  }
  return result + text.slice(end);
}

/** Never returns the word itself. */
function mistypeWord(word: string, random: Random): string {
  for (;;) {
    const mistyped = random.pick(EDITS)(word, random.below(word.length), random);
    if (mistyped !== word) return mistyped;
  }
}

function swap(word: string, at: number): string {
  const [first = "", second = ""] = word.slice(at, at + 2);
  return word.slice(0, at) + second + first + word.slice(at + 2);
}

function drop(word: string, at: number): string {
  return word.slice(0, at) + word.slice(at + 1);
}

function double(word: string, at: number): string {
  return word.slice(0, at + 1) + word.slice(at);
}

function replace(word: string, at: number, random: Random): string {
  const letter = word.charAt(at);
  const lower = letter.toLowerCase();
  const typed = random.pick(NEIGHBOURS[lower] ?? lower);
  return word.slice(0, at) + (letter === lower ? typed : typed.toUpperCase()) + word.slice(at + 1);
}
