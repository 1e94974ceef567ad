/** A run of text on a page, as the parser reports it. */
export interface PdfItem {
  readonly str: string;
  readonly width: number;
  readonly height: number;
  /** [a, b, c, d, x, y]: x and y are the start of the baseline, in points from the page's lower left corner. */
  readonly transform: readonly unknown[];
  readonly hasEOL: boolean;
}

interface TextLine {
  text: string;
  /** Left and right edge, baseline, height of the letters. */
  left: number;
  right: number;
  readonly y: number;
  height: number;
}

/** Baselines further apart than this many heights separate paragraphs. */
const PARAGRAPH_GAP = 1.8;
/** A line that spans this part of the text's width is assumed to continue on the next. */
const FULL_LINE = 0.85;

/**
 * The paragraphs of a page, in the order in which they were written. A PDF has no paragraphs or lines, only positions
 * of text: a wide gap separates paragraphs, a line that reaches the right edge continues, and a shorter one ends.
 */
export function paragraphsOf(items: readonly PdfItem[]): readonly string[] {
  const lines = linesOf(items);
  const right = lines.reduce((most, line) => Math.max(most, line.right), Number.NEGATIVE_INFINITY);
  const left = lines.reduce((least, line) => Math.min(least, line.left), Number.POSITIVE_INFINITY);
  const paragraphs: string[] = [];
  let open = "";
  let before: TextLine | null = null;
  for (const line of lines) {
    if (before === null) open = line.text;
    else if (isApart(before, line)) {
      paragraphs.push(open);
      open = line.text;
    } else {
      const goesOn = before.right - left >= FULL_LINE * (right - left);
      open = joinLines(open, line.text, goesOn);
    }
    before = line;
  }
  if (open !== "") paragraphs.push(open);
  return paragraphs;
}

function isApart(before: TextLine, line: TextLine): boolean {
  const height = Math.max(before.height, line.height, 1);
  const down = before.y - line.y;
  // A move upwards means the next column, which may continue in the middle of a sentence. So may the next page, but
  // that cannot be seen here.
  return down > PARAGRAPH_GAP * height;
}

function linesOf(items: readonly PdfItem[]): readonly TextLine[] {
  const lines: TextLine[] = [];
  let open: TextLine | null = null;
  for (const { str, width, height, transform, hasEOL } of items) {
    const [x, y] = [numberOf(transform[4]), numberOf(transform[5])];
    if (str !== "") {
      open ??= { text: "", left: x, right: x, y, height };
      open.text += str;
      if (str.trim() !== "") {
        open.left = Math.min(open.left, x);
        open.right = Math.max(open.right, x + width);
      }
      open.height = Math.max(open.height, height);
    }
    if (hasEOL && open !== null) {
      lines.push(open);
      open = null;
    }
  }
  if (open !== null) lines.push(open);
  for (const line of lines) line.text = line.text.replace(/\s+/gu, " ").trim();
  return lines.filter(({ text }) => text !== "");
}

function numberOf(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}

/** Scripts without spaces between words: their lines are joined without one. */
const NO_SPACES = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}、。]$/u;

/**
 * Appends a line to the text above. A divided word is joined: a hyphen after a letter and before a lower-case letter.
 * ("well-" and "known" are joined too: nothing on the page shows the difference.)
 */
function joinLines(above: string, line: string, goesOn: boolean): string {
  if (/\p{L}[-\u2010\u00AD]$/u.test(above.slice(-3)) && /^\p{Ll}/u.test(line)) {
    return above.slice(0, -1) + line;
  }
  if (!goesOn) return `${above}\n${line}`;
  return NO_SPACES.test(above.slice(-2)) ? above + line : `${above} ${line}`;
}
