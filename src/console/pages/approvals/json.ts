import { parseJson } from "../../../base/json-limits.ts";
import { escaped } from "./hidden.ts";

/** Indented JSON with invisible characters escaped, for reading and editing. */
export function prettyJson(value: unknown): string {
  return escaped(JSON.stringify(value, null, 2) ?? "null");
}

/** Whether two JSON values are equal. The order of keys does not matter. */
export function isSameJson(one: unknown, other: unknown): boolean {
  return canonical(one) === canonical(other);
}

function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) => {
    if (part === null || typeof part !== "object" || Array.isArray(part)) return part;
    return Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));
  });
}

export type Arguments = Record<string, unknown>;

/** Parses typed arguments, or explains what is wrong with them. */
export function readArguments(text: string): { readonly arguments: Arguments } | { readonly error: string } {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch (error) {
    return { error: `This is not valid JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    return { error: "Arguments must be an object: { … }" };
  }
  return { arguments: value as Arguments };
}
