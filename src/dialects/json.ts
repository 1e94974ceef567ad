import { parseJson } from "../base/json-limits.ts";

/** What a provider has sent. Undefined if it is not JSON, or too deep or too wide to be read in reasonable time. */
export function parsedOrNothing(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** A member of a JSON value; undefined if it is no object, or has none of this name. */
export function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}

/** Base64 and the like are no text: a model does not read them as tokens. */
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
