/**
 * Maximum total size in bytes of the texts on one page of a list. A limit on items would still allow 200 prompts of a
 * million characters, which are read, viewed and written at once.
 */
export const PAGE_BYTES = 4 * 1024 * 1024;

/** The first items that fit on one page: at most `limit`, and no more than `PAGE_BYTES` allow, but at least one. */
export function fitting<Item>(
  items: readonly Item[],
  limit: number,
  bytesOf: (item: Item) => number,
): Item[] {
  const shown: Item[] = [];
  let bytes = 0;
  for (const item of items.slice(0, limit)) {
    bytes += bytesOf(item);
    if (shown.length > 0 && bytes > PAGE_BYTES) break;
    shown.push(item);
  }
  return shown;
}
