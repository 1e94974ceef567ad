/** Parts of statements that mean the same in SQLite and in PostgreSQL. */

/** Whether a text contains another, not empty one. LIKE ignores case in SQLite, and reads `%` and `_` as patterns. */
export function containsSql(text: string, part: string): string {
  return `replace(${text}, ${part}, '') <> ${text}`;
}

/** Values per statement. */
const LIST = 64;
/** A condition on `column`, whose values are the parameters from `$first` on. See `listsOf`. */
export function inListSql(column: string, first: number): string {
  return `${column} IN (${Array.from({ length: LIST }, (_, index) => `$${first + index}`).join(", ")})`;
}

/**
 * Cuts values into lists for `inListSql`. All lists are equally long, so the statement is prepared once: the last one
 * repeats a value.
 */
export function listsOf<Value>(values: readonly Value[]): Value[][] {
  const lists: Value[][] = [];
  for (let from = 0; from < values.length; from += LIST) {
    const list = values.slice(from, from + LIST);
    const [fill] = list;
    while (fill !== undefined && list.length < LIST) list.push(fill);
    lists.push(list);
  }
  return lists;
}
