import { innerOf } from "./json.ts";

/** Size of a value by depth: the value itself is at depth 0, its items and properties at depth 1. */
export interface Bulk {
  /** Number of values and property names. */
  readonly values: readonly number[];
  /** Characters of the texts and names at this depth and below. */
  readonly characters: readonly number[];
  readonly longest: number;
}

/** @param most returns undefined if there are more values than this */
export function bulkOf(root: unknown, most: number): Bulk | undefined {
  const values: number[] = [];
  const characters: number[] = [];
  let longest = 0;
  let left = most;
  function text(length: number, depth: number): void {
    characters[depth] = (characters[depth] ?? 0) + length;
    longest = Math.max(longest, length);
  }
  let level: unknown[] = [root];
  for (let depth = 0; level.length > 0; depth += 1) {
    const below: unknown[] = [];
    left -= level.length;
    if (left < 0) return undefined;
    values[depth] = level.length;
    characters[depth] ??= 0;
    for (const value of level) {
      if (typeof value === "string") text(value.length, depth);
      if (typeof value !== "object" || value === null) continue;
      const inner = innerOf(value);
      if (inner.length > left) return undefined;
      if (!Array.isArray(value)) for (const name of Object.keys(value)) text(name.length, depth + 1);
      for (const each of inner) below.push(each);
    }
    level = below;
  }
  for (let depth = characters.length - 2; depth >= 0; depth -= 1) {
    characters[depth] = (characters[depth] ?? 0) + (characters[depth + 1] ?? 0);
  }
  return { values, characters, longest };
}
