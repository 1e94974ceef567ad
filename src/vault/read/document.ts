/**
 * A block of a document's own structure. Blocks are in order and do not overlap. Offsets are UTF-16 code units in
 * `text`.
 */
export interface Block {
  /** `row` is a record of CSV or JSON, or a row of a table. */
  readonly kind: "heading" | "paragraph" | "code" | "row";
  /** 1 to 6 for headings, otherwise 0. */
  readonly level: number;
  readonly start: number;
  readonly end: number;
}

/** Text before the first block (a Markdown file's front matter) belongs to the document but is not searched. */
export interface ReadDocument {
  /** The text that is stored and searched. Well-formed: no lone surrogates. */
  readonly text: string;
  readonly blocks: readonly Block[];
}

/** The supported media types. */
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

/** Maximum number of UTF-16 code units in a document's text. */
export const MAX_TEXT = 20_000_000;
export const MAX_BLOCKS = 1_000_000;
const MAX_TITLE = 300;

/** A title on one line, without Markdown heading marks; null if nothing is left. */
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
