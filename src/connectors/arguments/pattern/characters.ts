/** A set of code points as ranges, both ends inclusive, sorted and not adjacent. */
export type Characters = readonly (readonly [first: number, last: number])[];

const LAST = 0x10ffff;
export const ALL: Characters = [[0, LAST]];
const DIGITS: Characters = [[0x30, 0x39]];
const WORD: Characters = [
  [0x30, 0x39],
  [0x41, 0x5a],
  [0x5f, 0x5f],
  [0x61, 0x7a],
];
/** ECMAScript's WhiteSpace and LineTerminator. */
const SPACE: Characters = [
  [0x09, 0x0d],
  [0x20, 0x20],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
];
/** The meaning of a letter after a backslash. */
export const CLASSES: Readonly<Record<string, Characters | undefined>> = {
  d: DIGITS,
  D: without(DIGITS),
  w: WORD,
  W: without(WORD),
  s: SPACE,
  S: without(SPACE),
};

export function union(sets: readonly Characters[]): Characters {
  const merged: [number, number][] = [];
  for (const [first, last] of sets.flat().sort((a, b) => a[0] - b[0])) {
    const before = merged.at(-1);
    if (before && first <= before[1] + 1) before[1] = Math.max(before[1], last);
    else merged.push([first, last]);
  }
  return merged;
}

/** The complement of a set. @param set as returned by `union` */
export function without(set: Characters): Characters {
  const others: [number, number][] = [];
  let next = 0;
  for (const [first, last] of set) {
    if (first > next) others.push([next, first - 1]);
    next = last + 1;
  }
  if (next <= LAST) others.push([next, LAST]);
  return others;
}

export function has(set: Characters, character: number): boolean {
  return set.some(([first, last]) => first <= character && character <= last);
}
