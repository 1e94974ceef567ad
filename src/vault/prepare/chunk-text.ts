import type { Block } from "../read/document.ts";

/** The end of a sentence: its mark followed by white space, or without any as in Chinese and Japanese. */
const SENTENCE_END =
  /(?<=[.!?…][)\]"'”’»]{0,3})\s+|(?<=[。！？｡][」』）”’]{0,3})(?![」』）”’\s])|(?<=[。！？｡][」』）”’]{0,3})\s+/gu;
/** How far the pattern above looks back. */
const LOOK_BACK = 4;
/** Window around a cut that is searched for the ends of words and grapheme clusters. */
const CLUSTER_WINDOW = 64;

const WORDS = new Intl.Segmenter(undefined, { granularity: "word" });
const CLUSTERS = new Intl.Segmenter(undefined, { granularity: "grapheme" });
const SPACE = /\s/u;

function isSpace(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  if (code < 0x80) return code === 0x20 || (code >= 0x09 && code <= 0x0d);
  return SPACE.test(text.charAt(at));
}

/** The first position from `at` on that is not white space. */
export function skipSpace(text: string, at: number): number {
  let place = at;
  while (place < text.length && isSpace(text, place)) place += 1;
  return place;
}

/** `end` without the white space before it. */
export function trimmedEnd(text: string, start: number, end: number): number {
  let place = end;
  while (place > start && isSpace(text, place - 1)) place -= 1;
  return place;
}

/** The part of `text` without surrounding white space; null if there is nothing else. */
export function trimmed(
  text: string,
  start: number,
  end: number,
): { readonly start: number; readonly end: number } | null {
  const last = trimmedEnd(text, start, end);
  return last > start ? { start: skipSpace(text, start), end: last } : null;
}

/**
 * The last position between `from` and `to` at which text of this kind may be cut: the end of a sentence, otherwise
 * of a line, a word, or a grapheme cluster; never inside a surrogate pair. Code and records are cut at lines first.
 */
export function endBefore(text: string, from: number, to: number, kind: Block["kind"]): number {
  const sentence = () => sentenceEnd(text, from, to);
  const line = () => lineEnd(text, from, to);
  const place = kind === "paragraph" || kind === "heading" ? (sentence() ?? line()) : (line() ?? null);
  return place ?? (kind === "row" ? sentence() : null) ?? wordEnd(text, from, to) ?? clusterEnd(text, to);
}

/**
 * Where a passage that repeats the end of the previous one may start, from `from` on and before `end`: at a sentence
 * (at a line in code), otherwise at a word. Null if neither starts there.
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
  // One more, so that white space right after `to` counts.
  for (const match of text.slice(base, to + 1).matchAll(SENTENCE_END)) {
    const place = base + match.index;
    if (place >= from && place <= to) last = place;
  }
  return last;
}

function lineEnd(text: string, from: number, to: number): number | null {
  // Not before `from`: searching back to the start of the text for each cut would take quadratic time.
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
    // Characters before the window may belong to its first cluster, so the window's own start does not count.
    if (last > 0) return base + last;
  }
  return wholePair(text, to);
}

/** `at`, or the position before it if that would split a surrogate pair. */
function wholePair(text: string, at: number): number {
  const place = Math.min(at, text.length);
  const low = text.charCodeAt(place);
  const high = text.charCodeAt(place - 1);
  return low >= 0xdc00 && low <= 0xdfff && high >= 0xd800 && high <= 0xdbff ? place - 1 : place;
}
