/** A part of the text, from `start` to `end`. */
export interface Slice {
  readonly start: number;
  readonly end: number;
  readonly text: string;
  /** Estimated number of lines, for the height of a slice that is not rendered yet. */
  readonly lines: number;
}

/** The usual length of a slice, in UTF-16 code units. */
const USUAL = 6_000;
const LONGEST = 9_000;
const LINE = 110;

/**
 * Splits text into slices that a browser lays out when they come near the visible part. Slices end at line breaks, or
 * within a line that is longer than a slice. They can be joined to form the text again.
 */
export function slicesOf(text: string): readonly Slice[] {
  const slices: Slice[] = [];
  for (let start = 0; start < text.length; ) {
    const end = endFrom(text, start);
    const part = text.slice(start, end);
    slices.push({ start, end, text: part, lines: linesIn(part) });
    start = end;
  }
  return slices;
}

function endFrom(text: string, start: number): number {
  const most = start + LONGEST;
  if (text.length <= most) return text.length;
  const line = text.indexOf("\n", start + USUAL);
  if (line !== -1 && line < most) return line + 1;
  const earlier = text.lastIndexOf("\n", most);
  if (earlier > start) return earlier + 1;
  const blank = text.lastIndexOf(" ", most);
  if (blank > start) return blank + 1;
  const unit = text.charCodeAt(most);
  // Do not split surrogate pairs.
  return unit >= 0xdc00 && unit <= 0xdfff ? most - 1 : most;
}

function linesIn(text: string): number {
  let lines = 0;
  for (const line of text.split("\n")) lines += Math.max(1, Math.ceil(line.length / LINE));
  return lines;
}
