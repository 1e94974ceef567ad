import Type from "typebox";
import { invalidField } from "../../base/errors.ts";
import { fitting } from "../../store/page-bytes.ts";
import { jsonLength } from "./json-parts.ts";

/** Query parameters of every list. */
export const PAGE = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 200,
      default: 50,
      description: "The maximum number of items. A page also ends at 4 MiB.",
    }),
  ),
  cursor: Type.Optional(
    Type.String({ minLength: 1, maxLength: 512, description: "`next_cursor` of the previous page." }),
  ),
};

/** The query of a list without filters. */
export const LIST_QUERY = Type.Object(PAGE, { additionalProperties: false });

export const DEFAULT_LIMIT = 50;

/** A cursor is the last item's key in an opaque form. */
export function encodeCursor(key: string): string {
  return Buffer.from(key).toString("base64url");
}

/** @throws Problem 422 `validation_failed` if the cursor does not belong to this list */
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

/** A list page as in the contract. `items` has one more item than `limit` if there are more. */
export function page<Item, View>(
  items: readonly Item[],
  limit: number,
  key: (item: Item) => string,
  view: (item: Item) => View,
): { data: View[]; next_cursor: string | null } {
  const shown = items.slice(0, limit);
  const last = shown.at(-1);
  const next = items.length > limit && last !== undefined ? key(last) : null;
  return pageUpTo(shown, next, key, view);
}

/**
 * Like `page`, for a list that knows where it continues: after the key `next`, or nowhere if that is null. A page
 * that would be too long ends earlier, and continues after its last item.
 */
export function pageUpTo<Item, View>(
  items: readonly Item[],
  next: string | null,
  key: (item: Item) => string,
  view: (item: Item) => View,
): { data: View[]; next_cursor: string | null } {
  const data = fitting(items.map(view), items.length, (each) => jsonLength(each));
  const last = items[data.length - 1];
  const end = data.length < items.length && last !== undefined ? key(last) : next;
  return { data, next_cursor: end === null ? null : encodeCursor(end) };
}

/** Like `page`, for a list that was read only until a page would have become too long. */
export function pageOf<Item, View>(
  items: readonly Item[],
  more: boolean,
  key: (item: Item) => string,
  view: (item: Item) => View,
): { data: View[]; next_cursor: string | null } {
  const last = items.at(-1);
  return pageUpTo(items, more && last !== undefined ? key(last) : null, key, view);
}
