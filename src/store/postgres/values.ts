import type { SqlValue } from "../db.ts";

/**
 * PostgreSQL's text cannot contain U+0000, and SQLite's can. So U+0000 is stored as U+0001 U+0001, and U+0001 as U+0001
 * U+0002. All other text is stored as it is. The encoding keeps the order of texts and of their prefixes, so
 * comparisons, indexes and `LIKE 'a%'` work. Only `length` counts one character more for each of these two.
 *
 * A lone surrogate becomes U+FFFD, as in SQLite.
 */
const ENCODED = { "\0": "\u0001\u0001", "\u0001": "\u0001\u0002" } as const;

function encodeText(text: string): string {
  if (!text.includes("\0") && !text.includes("\u0001")) return text;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to encode
  return text.replace(/[\0\u0001]/g, (character) => (character === "\0" ? ENCODED["\0"] : ENCODED["\u0001"]));
}

function decodeText(text: string): string {
  if (!text.includes("\u0001")) return text;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to decode
  return text.replace(/\u0001[\u0001\u0002]/g, (pair) => (pair === ENCODED["\0"] ? "\0" : "\u0001"));
}

/** A parameter in the form that the driver sends. */
export type Parameter = string | Uint8Array | null;

/** @throws RangeError for a number that is not exact */
export function encodeParameters(values: readonly SqlValue[] | undefined): Parameter[] {
  return values?.map(encodeParameter) ?? [];
}

function encodeParameter(value: SqlValue): Parameter {
  if (typeof value === "string") return encodeText(value);
  if (typeof value !== "number") return value;
  return String(exact(value));
}

function exact(value: number): number {
  if (!Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value))) {
    throw new RangeError(`${value} cannot be stored or read exactly`);
  }
  return value;
}

/** The types whose text is converted, by their numbers in `pg_type`. All others remain text. */
const PARSERS: Readonly<Record<number, (text: string) => unknown>> = {
  // SQLite has no booleans.
  16: (text) => (text === "t" ? 1 : 0),
  17: (text) => Uint8Array.fromHex(text.slice("\\x".length)),
  20: exactNumber,
  21: Number,
  23: Number,
  25: decodeText,
  700: Number,
  701: Number,
  1700: exactNumber,
};

/** @throws RangeError for an integer that a number cannot represent */
function exactNumber(text: string): number {
  return exact(Number(text));
}

/** Converts what the server sends as text, by the number of its type. */
export function parserOf(type: number): (text: string) => unknown {
  return PARSERS[type] ?? unchanged;
}

function unchanged(text: string): string {
  return text;
}
