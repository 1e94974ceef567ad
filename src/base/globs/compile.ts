import { TextPositions } from "./text-positions.ts";

/** Whether a string matches a pattern. */
export type Glob = (text: string) => boolean;

/** Shared by all patterns, because a text is usually matched with many of them in a row. */
const positions = new TextPositions();

/**
 * Compiles a pattern (see `isGlob`). Does not use a regular expression, which could backtrack: each part between stars
 * is searched once, from left to right.
 */
export function compileGlob(pattern: string): Glob {
  if (/^\*+$/.test(pattern)) return () => true;
  const parts = pattern.split("*");
  // Most patterns contain no `?`. Searching their short parts for one takes as long as comparing them.
  const isPlain = !pattern.includes("?");
  const first = parts[0] ?? "";
  if (parts.length === 1) {
    return isPlain
      ? (text) => text === pattern
      : (text) => text.length === pattern.length && fits(first, text, 0, isPlain);
  }
  const last = parts.at(-1) ?? "";
  const middle = parts.slice(1, -1).filter((part) => part !== "");
  return (text) => {
    const end = text.length - last.length;
    if (end < first.length || !fits(first, text, 0, isPlain) || !fits(last, text, end, isPlain)) return false;
    let at = first.length;
    for (const part of middle) {
      const found = find(part, text, at, end, isPlain);
      if (found < 0) return false;
      at = found + part.length;
    }
    return true;
  };
}

/** The bytes of memory that a compiled pattern takes, at most. Less than half of that was measured. */
export function bytesOfGlob(pattern: string): number {
  return 512 + pattern.length + 80 * partsOf(pattern);
}

/**
 * How long matching a pattern with a name takes, as a number of steps of about 30 ns: one for each part, and one for
 * each character of a pattern that contains `?`.
 */
export function stepsOf(pattern: string): number {
  const parts = partsOf(pattern);
  return pattern.includes("?") ? parts + pattern.replaceAll(/[*?]/g, "").length : parts;
}

/** The number of parts between stars. Counted without making them: hostile patterns have many. */
function partsOf(pattern: string): number {
  let parts = 1;
  for (let at = pattern.indexOf("*"); at >= 0; at = pattern.indexOf("*", at + 1)) parts += 1;
  return parts;
}

/** The first position at or after `from` where the part matches and ends by `end`; -1 if there is none. */
function find(part: string, text: string, from: number, end: number, isPlain: boolean): number {
  if (!isPlain && part.includes("?")) {
    positions.read(text);
    return positions.find(part, from, end);
  }
  const found = text.indexOf(part, from);
  return found + part.length > end ? -1 : found;
}

function fits(part: string, text: string, at: number, isPlain: boolean): boolean {
  if (isPlain || !part.includes("?")) return text.startsWith(part, at);
  for (let index = 0; index < part.length; index++) {
    const wanted = part[index];
    const found = text[at + index];
    // A star in the text comes from another pattern (`covers`) and represents any number of characters.
    if (found === undefined || (wanted === "?" ? found === "*" : found !== wanted)) return false;
  }
  return true;
}
