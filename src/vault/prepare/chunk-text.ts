import type { Block } from "../read/document.ts";

/** The end of a sentence, as white space behind its mark, or with none as Chinese and Japanese write. */
const SENTENCE_END =
  /(?<=[.!?…][)\]"'”’»]{0,3})\s+|(?<=[。！？｡][」』）”’]{0,3})(?![」』）”’\s])|(?<=[。！？｡][」』）”’]{0,3})\s+/gu;
/** What the pattern above looks back at. */
const LOOK_BACK = 4;
/** Around the place of a cut, how far the ends of words and of what readers see as one character are looked for. */
const CLUSTER_WINDOW = 64;

const WORDS = new Intl.Segmenter(undefined, { granularity: "word" });
const CLUSTERS = new Intl.Segmenter(undefined, { granularity: "grapheme" });
const SPACE = /\s/u;

function isSpace(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  if (code < 0x80) return code === 0x20 || (code >= 0x09 && code <= 0x0d);
  return SPACE.test(text.charAt(at));
}

/** The first place from `at` on that is no white space. */
export function skipSpace(text: string, at: number): number {
  let place = at;
  while (place < text.length && isSpace(text, place)) place += 1;
  return place;
}

/** `end`, or the place before it that has no white space before it. */
export function trimmedEnd(text: string, start: number, end: number): number {
  let place = end;
  while (place > start && isSpace(text, place - 1)) place -= 1;
  return place;
}

/** The part of `text` without white space around it; null where there is nothing else. */
export function trimmed(
  text: string,
  start: number,
  end: number,
): { readonly start: number; readonly end: number } | null {
  const last = trimmedEnd(text, start, end);
  return last > start ? { start: skipSpace(text, start), end: last } : null;
}

/**
 * The last place between `from` and `to` where text of this kind may be cut: at the end of a sentence, else of a line, of a
 * word, of a character as readers see it; never inside of a surrogate pair. Code and records are cut by lines first.
 */
export function endBefore(text: string, from: number, to: number, kind: Block["kind"]): number {
  const sentence = () => sentenceEnd(text, from, to);
  const line = () => lineEnd(text, from, to);
  const place = kind === "paragraph" || kind === "heading" ? (sentence() ?? line()) : (line() ?? null);
  return place ?? (kind === "row" ? sentence() : null) ?? wordEnd(text, from, to) ?? clusterEnd(text, to);
}

/**
 * Where a passage that repeats the end of the one before may start, at or after `from` and before `end`: with a sentence
 * (of code, a line), else with a word. Null where neither starts there.
 */
export function overlapStart(text: string, from: number, end: number, code: boolean): number | null {
  if (code) {
    const line = text.slice(from - 1, end).indexOf("\n");
    const place = skipSpace(text, from + line);
    if (line !== -1 && place < end) return place;
  }
  const base = Math.max(0, from - LOOK_BACK);
  for (const match of text.slice(base, end).matchAll(SENTENCE_END)) {
    const place = base + match.index + match[0].length;
    if (place >= from && place < end) return place;
  }
  for (let at = from; at < end; at += 1) {
    if (isSpace(text, at - 1) && !isSpace(text, at)) return at;
  }
  return null;
}

function sentenceEnd(text: string, from: number, to: number): number | null {
  const base = Math.max(0, from - LOOK_BACK);
  let last: number | null = null;
  // One more, so that white space right behind `to` counts.
  for (const match of text.slice(base, to + 1).matchAll(SENTENCE_END)) {
    const place = base + match.index;
    if (place >= from && place <= to) last = place;
  }
  return last;
}

function lineEnd(text: string, from: number, to: number): number | null {
  // Not beyond `from`: a search to the text's start for each cut would take time by its square.
  const at = text.slice(from, to + 1).lastIndexOf("\n");
  return at === -1 ? null : from + at;
}

function wordEnd(text: string, from: number, to: number): number | null {
  for (let at = to; at >= from; at -= 1) if (isSpace(text, at)) return at;
  return null;
}

function clusterEnd(text: string, to: number): number {
  const base = wholePair(text, to - CLUSTER_WINDOW);
  const window = text.slice(base, wholePair(text, to + CLUSTER_WINDOW));
  for (const segmenter of [WORDS, CLUSTERS]) {
    let last = 0;
    for (const { index } of segmenter.segment(window)) {
      if (base + index > to) break;
      last = index;
    }
    // Characters before the window may belong to its first one: its own start says nothing.
    if (last > 0) return base + last;
  }
  return wholePair(text, to);
}

/** `at`, or the place before it where that is inside of a surrogate pair. */
function wholePair(text: string, at: number): number {
  const place = Math.min(at, text.length);
  const low = text.charCodeAt(place);
  const high = text.charCodeAt(place - 1);
  return low >= 0xdc00 && low <= 0xdfff && high >= 0xd800 && high <= 0xdbff ? place - 1 : place;
}
