import { keyOf } from "./keys.ts";

/** UTF-16 code units in a page. A passage is read from one or two pages, however long its document is. */
export const PAGE_LENGTH = 8_192;

export interface TextPage {
  /** Offset of the page in the document's text. */
  readonly start: number;
  readonly text: string;
}

/**
 * Splits text into pages. A page begins at a multiple of the page length, or one code unit earlier if that would
 * split a surrogate pair.
 */
export function pagesOf(text: string): TextPage[] {
  const pages: TextPage[] = [];
  for (let start = 0; start < text.length; ) {
    const goal = (pages.length + 1) * PAGE_LENGTH;
    const end = goal < text.length && isPairAt(text, goal - 1) ? goal - 1 : Math.min(goal, text.length);
    pages.push({ start, text: text.slice(start, end) });
    start = end;
  }
  return pages;
}

/**
 * Keys of the pages that contain a range of a document's text. A page may begin one code unit early, to keep a
 * surrogate pair together.
 */
export function pageKeys(document: number, start: number, end: number): [first: number, last: number] {
  return [
    keyOf(document, Math.floor(start / PAGE_LENGTH)),
    keyOf(document, Math.floor(end / PAGE_LENGTH) + 1),
  ];
}

/** Extracts a range from the pages that contain it, in order. */
export function cutPages(pages: readonly TextPage[], start: number, end: number): string {
  const first = pages[0];
  if (!first) return "";
  const text = pages.length === 1 ? first.text : pages.map((page) => page.text).join("");
  return text.slice(start - first.start, end - first.start);
}

function isPairAt(text: string, index: number): boolean {
  const unit = text.charCodeAt(index);
  return unit >= 0xd800 && unit <= 0xdbff;
}
