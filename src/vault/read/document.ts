/** One piece of a document's own structure, in order, not overlapping. Offsets are UTF-16 code units in `text`. */
export interface Block {
  /** `row` is one record of CSV or JSON, or one row of a table. */
  readonly kind: "heading" | "paragraph" | "code" | "row";
  /** 1 to 6 for headings, else 0. */
  readonly level: number;
  readonly start: number;
  readonly end: number;
}

/** What stands before the first block (a Markdown file's front matter) belongs to the text but is not searched. */
export interface ReadDocument {
  /** What is stored and searched; well-formed (no lone surrogates). */
  readonly text: string;
  readonly blocks: readonly Block[];
}

/** The media types that can be read. */
export const CONTENT_TYPES = [
  "text/plain",
  "text/markdown",
  "text/html",
  "application/xhtml+xml",
  "application/pdf",
  "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
  "text/csv",
  "application/json",
] as const;

export type ContentType = (typeof CONTENT_TYPES)[number];

/** UTF-16 code units that a document's text may have. */
export const MAX_TEXT = 20_000_000;
export const MAX_BLOCKS = 1_000_000;
const MAX_TITLE = 300;

/** A title on one line, without Markdown's marks of a heading; null where nothing is left. */
export function titleOf(heading: string): string | null {
  const line = heading
    // A heading may be as long as a document, and the patterns below look back.
    .slice(0, 2 * MAX_TITLE)
    .trim()
    .replace(/^#{1,6}(?:\s+|$)/u, "")
    .replace(/\s#+$/u, "")
    .replace(/\n[ \t]*(?:=+|-+)$/u, "")
    .replace(/\s+/gu, " ")
    .trim();
  return line === "" ? null : line.slice(0, MAX_TITLE).toWellFormed();
}
