import { invalidAt, listAt, type Members, optional, textAt } from "../../translation/fields.ts";

/* Further readers of a request's values. All throw Problem 422 `validation_failed`. */

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** A member of an object at `path`; undefined if it is missing or null. */
export function memberAt<Value>(
  members: Members,
  name: string,
  path: string,
  read: (value: unknown, path: string) => Value,
): Value | undefined {
  return optional(members[name], path === "" ? name : `${path}.${name}`, read);
}

/** A whole number above 0. */
export function countAt(value: unknown, path: string): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value > 0) return value;
  throw invalidAt(path, "must be a whole number above 0");
}

export function booleanAt(value: unknown, path: string): boolean {
  if (typeof value === "boolean") return value;
  throw invalidAt(path, "must be true or false");
}

export function textsAt(value: unknown, path: string): string[] {
  return listAt(value, path).map((item, index) => textAt(item, `${path}[${index}]`));
}

/**
 * A file's data. The AI SDK takes some other texts for ids of files in the provider's account, which all workspaces
 * share.
 */
export function base64At(value: unknown, path: string): string {
  const text = textAt(value, path);
  if (BASE64.test(text)) return text;
  throw invalidAt(path, "must be in base64");
}

/** An object without the members that are undefined. */
export function defined<Value extends object>(
  members: Value,
): { [Name in keyof Value]?: Exclude<Value[Name], undefined> } {
  const kept = Object.entries(members).filter(([, value]) => value !== undefined);
  return Object.fromEntries(kept) as { [Name in keyof Value]?: Exclude<Value[Name], undefined> };
}
