/** A range of a document's text, in UTF-16 code units, end exclusive. */
export interface TextPassage {
  readonly start: number;
  readonly end: number;
}

/** The passage named in an address; null if it is invalid. */
export function passageOf(query: Readonly<Record<string, string>>): TextPassage | null {
  if (query.start === undefined || query.end === undefined) return null;
  const start = Number(query.start);
  const end = Number(query.end);
  const isOne = Number.isSafeInteger(start) && Number.isSafeInteger(end) && start >= 0 && start < end;
  return isOne ? { start, end } : null;
}
