/** A stretch of a document's text, in UTF-16 code units, the end not within. */
export interface Passage {
  readonly start: number;
  readonly end: number;
}

/** The passage that an address names, as far as it can be one. */
export function passageOf(query: Readonly<Record<string, string>>): Passage | null {
  if (query.start === undefined || query.end === undefined) return null;
  const start = Number(query.start);
  const end = Number(query.end);
  const isOne = Number.isSafeInteger(start) && Number.isSafeInteger(end) && start >= 0 && start < end;
  return isOne ? { start, end } : null;
}
