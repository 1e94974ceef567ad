/**
 * Documents, their passages and their pages are rows under whole numbers: a document's key times 65,536, plus the place of
 * the passage or page within it. Keys grow with each writing and never come back, so that what is kept under a key in
 * memory is what is in the store, or gone from it.
 */
export const PER_DOCUMENT = 65_536;

export function keyOf(document: number, place: number): number {
  return document * PER_DOCUMENT + place;
}

export function documentOf(key: number): number {
  return Math.floor(key / PER_DOCUMENT);
}
