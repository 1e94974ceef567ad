import { invalidField, Problem } from "../../base/errors.ts";
import { JsonTooLarge, MAX_MEMBERS } from "../../base/json-limits.ts";
import type { JsonTexts } from "../../base/nested-json.ts";
import { pointerTo } from "./unsupported.ts";

/** The members of a JSON object. */
export type ReadonlyMembers = Readonly<Record<string, unknown>>;

/* Each of these reads a value of a request. `path` is its location, such as `tools[8].type`. All throw Problem 422
   `validation_failed`. */

export function objectAt(value: unknown, path: string): ReadonlyMembers {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
  throw invalidAt(path, "must be an object");
}

export function listAt(value: unknown, path: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw invalidAt(path, "must be a list");
}

export function textAt(value: unknown, path: string): string {
  if (typeof value === "string") return value;
  throw invalidAt(path, "must be a string");
}

export function booleanAt(value: unknown, path: string): boolean {
  if (typeof value === "boolean") return value;
  throw invalidAt(path, "must be true or false");
}

/**
 * Excludes hyphens, and so `file-…`, which the AI SDK treats as the id of a file in the account that all workspaces
 * share.
 */
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

export function base64At(value: unknown, path: string): string {
  const text = textAt(value, path);
  if (BASE64.test(text)) return text;
  throw invalidAt(path, "must be in base64");
}

export function numberAt(value: unknown, path: string): number {
  if (typeof value === "number") return value;
  throw invalidAt(path, "must be a number");
}

export function oneOf<Value extends string>(value: unknown, path: string, known: readonly Value[]): Value {
  const found = known.find((each) => each === value);
  if (found !== undefined) return found;
  throw invalidAt(path, `must be one of ${known.join(", ")}`);
}

/**
 * The value of a string that contains JSON; undefined if it does not.
 * @param texts all JSON strings of the request
 * @throws Problem 413 `body_too_large`
 */
export function jsonAt(text: string, path: string, texts: JsonTexts): unknown {
  try {
    return texts.parsed(text);
  } catch (error) {
    if (!(error instanceof JsonTooLarge)) throw error;
    const message = `has too many members: all JSON strings of a request may have ${MAX_MEMBERS} in total.`;
    const errors = [{ path: pointerTo(path), message }];
    throw new Problem("body_too_large", `${path} ${message}`, { errors });
  }
}

/** Undefined for a member that is missing or null, which are the same to clients. */
export function optional<Value>(
  value: unknown,
  path: string,
  read: (value: unknown, path: string) => Value,
): Value | undefined {
  return value === undefined || value === null ? undefined : read(value, path);
}

export function invalidAt(path: string, message: string): Problem {
  return invalidField(pointerTo(path), message);
}
