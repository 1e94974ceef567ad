/** A part of a text: `text` is what stands from `start` to `end`. */
export interface Slice {
  readonly start: number;
  readonly end: number;
  readonly text: string;
  /** About how many lines it takes, so that what is not drawn yet has about its height. */
  readonly lines: number;
}

/** UTF-16 code units of a slice. */
const USUAL = 6_000;
const LONGEST = 9_000;
const LINE = 110;

/**
 * A text in slices, each of which a browser draws when it comes near what is seen. They end where a line does, and within a line
 * where that is longer than a slice may be. Joined they are the text.
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
  // Both halves of a character stay together.
  return unit >= 0xdc00 && unit <= 0xdfff ? most - 1 : most;
}

function linesIn(text: string): number {
  let lines = 0;
  for (const line of text.split("\n")) lines += Math.max(1, Math.ceil(line.length / LINE));
  return lines;
}
