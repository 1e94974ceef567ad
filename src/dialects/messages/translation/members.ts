import { invalidAt, listAt, optional, type ReadonlyMembers, textAt } from "../../translation/fields.ts";

/* Further readers of a request's values. All throw Problem 422 `validation_failed`. */

/** A member of an object at `path`; undefined if it is missing or null. */
export function memberAt<Value>(
  members: ReadonlyMembers,
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

export function textsAt(value: unknown, path: string): string[] {
  return listAt(value, path).map((item, index) => textAt(item, `${path}[${index}]`));
}

/** An object without the members that are undefined. */
export function defined<Value extends object>(
  members: Value,
): { [Name in keyof Value]?: Exclude<Value[Name], undefined> } {
  const kept = Object.entries(members).filter(([, value]) => value !== undefined);
  return Object.fromEntries(kept) as { [Name in keyof Value]?: Exclude<Value[Name], undefined> };
}
