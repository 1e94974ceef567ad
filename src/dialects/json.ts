import { field } from "../base/json.ts";
import { endOfQuoted, parseJson } from "../base/json-limits.ts";

export { field } from "../base/json.ts";

/** A JSON object. */
export type Members = Record<string, unknown>;

/** A JSON object with a type: an event, a block of a message, or an item of a response. */
export type TypedMembers = Readonly<Record<string, unknown>> & { readonly type: string };

export function isMembers(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether a value is a string, or absent. */
export function isTextOrNothing(value: unknown): boolean {
  return value === undefined || value === null || typeof value === "string";
}

/** A whole number above 0; 0 for anything else. */
export function countOf(value: unknown): number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : 0;
}

/** Base64 and similar encodings are not text: a model does not read them as tokens. */
const ENCODED = /^[A-Za-z0-9+/_=-]*$/;
const LONGEST_WORD = 4_096;

/**
 * Size in bytes of what is certainly text in a JSON value: without anything that may be a file sent as data. Only to
 * judge whether a provider's count is too low. Text that looks like a file does not count, so nothing is charged by
 * it.
 */
export function textBytesOf(root: unknown): number {
  if (typeof root === "string") return isFile(root) ? 0 : Buffer.byteLength(root);
  let bytes = 0;
  const waiting = isContainer(root) ? [root] : [];
  for (let container = waiting.pop(); container !== undefined; container = waiting.pop()) {
    for (const value of Array.isArray(container) ? container : Object.values(container)) {
      if (typeof value === "string") bytes += isFile(value) ? 0 : Buffer.byteLength(value);
      else if (isContainer(value)) waiting.push(value);
    }
  }
  return bytes;
}

/** Size in bytes of everything that is written in a JSON value: texts, names, numbers. */
export function allTextBytes(root: unknown): number {
  if (!isContainer(root)) return Buffer.byteLength(String(root ?? ""));
  let bytes = 0;
  const waiting: object[] = [root];
  for (let container = waiting.pop(); container !== undefined; container = waiting.pop()) {
    const isList = Array.isArray(container);
    for (const [name, value] of Object.entries(container)) {
      if (!isList) bytes += Buffer.byteLength(name);
      if (isContainer(value)) waiting.push(value);
      else bytes += Buffer.byteLength(String(value));
    }
  }
  return bytes;
}

/** Whether a text can be base64. */
export function isEncoded(text: string): boolean {
  return ENCODED.test(text);
}

function isContainer(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function isFile(text: string): boolean {
  return text.startsWith("data:") || (text.length > LONGEST_WORD && ENCODED.test(text));
}

/**
 * Parses data from a provider. Undefined if it is not JSON, or is nested too deeply or has too many members to read
 * in reasonable time.
 */
export function parsedOrNothing(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** Whether an answer is the provider's error, described by a text or an object. Some servers send errors with status 200. */
export function isErrorAnswer(value: unknown): boolean {
  const error = field(value, "error");
  return typeof error === "string" ? error !== "" : isMembers(error);
}

/**
 * Like `parsedOrNothing`, but also undefined if a number loses digits or if a name occurs twice in an object: a
 * client that reads the text as it arrives may have shown something that the value would lack.
 */
export function parsedWithoutLoss(text: string): unknown {
  const value = parsedOrNothing(text);
  if (value === undefined || losesDigits(text)) return undefined;
  return namesIn(JSON.stringify(value)) === namesIn(text) ? value : undefined;
}

/** Every number keeps 15 digits. Only a number with more digits, or with an exponent, can change when it is parsed. */
const MAY_LOSE_DIGITS = /[\d.]{16}|\d[eE]/;
const NUMBER_OR_QUOTE = /"|-?\d[\d.eE+-]*/g;
const MOST_KEPT_DIGITS = 15;

/** Whether any number in JSON text changes when it is parsed, as `12345678901234567` and `1e999` do. */
export function losesDigits(json: string): boolean {
  if (!MAY_LOSE_DIGITS.test(json)) return false;
  NUMBER_OR_QUOTE.lastIndex = 0;
  for (let found = NUMBER_OR_QUOTE.exec(json); found; found = NUMBER_OR_QUOTE.exec(json)) {
    const [number] = found;
    if (number === '"') NUMBER_OR_QUOTE.lastIndex = endOfQuoted(json, found.index + 1) + 1;
    else if (isInexact(number)) return true;
  }
  return false;
}

function isInexact(number: string): boolean {
  const value = Number(number);
  if (String(value) === number) return false;
  const digits = number
    .replace(/[eE].*/, "")
    .replaceAll(/\D/g, "")
    .replace(/^0+/, "");
  return digits.length > MOST_KEPT_DIGITS || !Number.isFinite(value) || (value === 0 && digits !== "");
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
