import { endOfQuoted, parseJson } from "../base/json-limits.ts";

export { field } from "../base/json.ts";

/** A JSON object. */
export type Members = Record<string, unknown>;

export function isMembers(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A whole number above 0; 0 for anything else. */
export function countOf(value: unknown): number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : 0;
}

/** Base64 and similar encodings are not text: a model does not read them as tokens. */
const ENCODED = /^[A-Za-z0-9+/_=-]*$/;
const LONGEST_WORD = 4_096;

/** Bytes of the texts in a JSON value, without files that are sent as data. */
export function textBytesOf(root: unknown): number {
  let bytes = 0;
  const waiting = [root];
  for (let value = waiting.pop(); value !== undefined; value = waiting.pop()) {
    if (typeof value === "string") bytes += isFile(value) ? 0 : Buffer.byteLength(value);
    else if (typeof value === "object" && value !== null)
      waiting.push(...Object.values(value).filter(isPart));
  }
  return bytes;
}

function isPart(value: unknown): boolean {
  return typeof value === "string" || typeof value === "object";
}

function isFile(text: string): boolean {
  return text.startsWith("data:") || (text.length > LONGEST_WORD && ENCODED.test(text));
}

/** Parses data from a provider. Undefined if it is not JSON, or too deep or too wide to read in reasonable time. */
export function parsedOrNothing(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/**
 * Like `parsedOrNothing`, but also undefined if a name occurs twice in an object: the value would lack the first
 * member, which a client that reads the text as it arrives may have shown.
 */
export function parsedWithoutLoss(text: string): unknown {
  const value = parsedOrNothing(text);
  return value === undefined || namesIn(JSON.stringify(value)) === namesIn(text) ? value : undefined;
}

function namesIn(json: string): number {
  let names = 0;
  for (let at = 0; at < json.length; at++) {
    if (json[at] === '"') at = endOfQuoted(json, at + 1);
    else if (json[at] === ":") names++;
  }
  return names;
}

/** A number of tokens; undefined if the value is not one. */
export function tokenCount(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}
