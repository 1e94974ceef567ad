/**
 * Documents, passages and pages have integer keys: a document's key times 65,536, plus the index of the passage or
 * page. Keys grow with each write and are never reused, so a cached row is either current or deleted.
 */
export const PER_DOCUMENT = 65_536;

export function keyOf(document: number, place: number): number {
  return document * PER_DOCUMENT + place;
}

export function documentOf(key: number): number {
  return Math.floor(key / PER_DOCUMENT);
}
