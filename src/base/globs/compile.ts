import { type PartWithWildcards, TextPositions } from "./text-positions.ts";

/** Whether a string matches a pattern. */
export type Glob = (text: string) => boolean;

/** Part of a pattern between two stars. */
interface Part {
  readonly text: string;
  /** Null if the part contains no `?`. */
  readonly wildcards: PartWithWildcards | null;
}

/** Shared by all patterns, because a text is usually matched with many of them in a row. */
const positions = new TextPositions();

/**
 * Compiles a pattern (see `isGlob`). Does not use a regular expression, which could backtrack: each part between stars
 * is searched once, from left to right.
 */
export function compileGlob(pattern: string): Glob {
  if (/^\*+$/.test(pattern)) return () => true;
  const texts = pattern.split("*");
  const first = partOf(texts[0] ?? "");
  if (texts.length === 1) {
    return first.wildcards
      ? (text) => text.length === pattern.length && fits(first, text, 0)
      : (text) => text === pattern;
  }
  const last = partOf(texts.at(-1) ?? "");
  const middle = texts
    .slice(1, -1)
    .filter((text) => text !== "")
    .map(partOf);
  return (text) => {
    const end = text.length - last.text.length;
    if (end < first.text.length || !fits(first, text, 0) || !fits(last, text, end)) return false;
    let at = first.text.length;
    for (const part of middle) {
      const found = find(part, text, at, end);
      if (found < 0) return false;
      at = found + part.text.length;
    }
    return true;
  };
}

/**
 * How long matching a pattern with a name takes, as a number of steps of about 30 ns: one for each part, and one for
 * each character of a pattern that contains `?`.
 */
export function stepsOf(pattern: string): number {
  const parts = pattern.split("*").length;
  return pattern.includes("?") ? parts + pattern.replaceAll(/[*?]/g, "").length : parts;
}

function partOf(text: string): Part {
  if (!text.includes("?")) return { text, wildcards: null };
  const all = [...text].map((character, offset) => ({ character, offset }));
  return {
    text,
    wildcards: {
      length: text.length,
      characters: all
        .filter(({ character }) => character !== "?")
        .map(({ character, offset }) => ({ code: character.charCodeAt(0), offset })),
      wildcards: all.filter(({ character }) => character === "?").map(({ offset }) => offset),
    },
  };
}

/** The first position at or after `from` where the part matches and ends by `end`; -1 if there is none. */
function find({ text: part, wildcards }: Part, text: string, from: number, end: number): number {
  if (wildcards) {
    positions.read(text);
    return positions.find(wildcards, from, end);
  }
  const found = text.indexOf(part, from);
  return found + part.length > end ? -1 : found;
}

function fits({ text: part, wildcards }: Part, text: string, at: number): boolean {
  if (!wildcards) return text.startsWith(part, at);
  for (let index = 0; index < part.length; index++) {
    const wanted = part[index];
    const found = text[at + index];
    // A star in the text comes from another pattern (`covers`) and represents any number of characters.
    if (found === undefined || (wanted === "?" ? found === "*" : found !== wanted)) return false;
  }
  return true;
}
