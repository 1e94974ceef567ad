import Type from "typebox";
import { invalidField } from "../base/errors.ts";

/** Query parameters that every list takes. */
export const PAGE = {
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 200, default: 50, description: "How many to answer at most." }),
  ),
  cursor: Type.Optional(
    Type.String({ minLength: 1, maxLength: 512, description: "`next_cursor` of the page before." }),
  ),
};

export const DEFAULT_LIMIT = 50;

/** A cursor is the last item's key, made opaque. */
export function encodeCursor(key: string): string {
  return Buffer.from(key).toString("base64url");
}

/** @throws Problem 422 `validation_failed` when it is none of ours. */
export function decodeCursor(
  cursor: string | undefined,
  valid: (key: string) => boolean,
): string | undefined {
  if (cursor === undefined) return undefined;
  const key = Buffer.from(cursor, "base64url").toString();
  if (encodeCursor(key) !== cursor || !valid(key))
    throw invalidField("/cursor", "is not a cursor of this list");
  return key;
}

/** The contract's list. `items` holds one more than `limit` when there are more. */
export function page<Item, View>(
  items: readonly Item[],
  limit: number,
  key: (item: Item) => string,
  view: (item: Item) => View,
): { data: View[]; next_cursor: string | null } {
  const shown = items.slice(0, limit);
  const last = shown[shown.length - 1];
  const next = items.length > limit && last !== undefined ? key(last) : null;
  return pageUpTo(shown, next, view);
}

/** As `page`, for a list that knows by itself where it goes on: after the key `next`, or nowhere. */
export function pageUpTo<Item, View>(
  items: readonly Item[],
  next: string | null,
  view: (item: Item) => View,
): { data: View[]; next_cursor: string | null } {
  return { data: items.map(view), next_cursor: next === null ? null : encodeCursor(next) };
}
