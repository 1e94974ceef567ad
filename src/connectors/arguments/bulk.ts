import { innerOf } from "./json.ts";

/** How much there is to check. */
export interface Bulk {
  /** Number of values, at all depths. */
  readonly values: number;
  /** Characters of all strings and property names. */
  readonly characters: number;
}

/** @param most returns undefined if there are more values than this */
export function bulkOf(root: unknown, most: number): Bulk | undefined {
  const waiting: unknown[] = [root];
  let values = 0;
  let characters = 0;
  while (waiting.length > 0) {
    const value = waiting.pop();
    values += 1;
    if (values > most) return undefined;
    if (typeof value === "string") characters += value.length;
    if (typeof value !== "object" || value === null) continue;
    const inner = innerOf(value);
    if (inner.length > most) return undefined;
    if (!Array.isArray(value)) for (const name of Object.keys(value)) characters += name.length;
    for (const each of inner) waiting.push(each);
  }
  return { values, characters };
}
