import { checkBlocks } from "./builder.ts";
import type { ReadDocument } from "./document.ts";
import { MarkdownScanner } from "./markdown-scanner.ts";
import { plainBlocks } from "./plain.ts";

/** Front matter is only recognised within the first characters of a file. */
const FRONT_MATTER = 65_536;

/** Markdown, stored unchanged. Front matter belongs to the text but to no block. */
export function readMarkdown(text: string): ReadDocument {
  const front = frontMatter(text);
  const blocks = new MarkdownScanner(text, front.end).blocks();
  checkBlocks(blocks);
  // If there is nothing but front matter, that is searchable instead.
  return { text, blocks: blocks.length > 0 ? blocks : plainBlocks(text) };
}

/**
 * YAML between two lines "---" at the very top, starting with a key, and its end. (A lone "---" may also be a rule.)
 */
export function frontMatter(text: string): { readonly yaml: string; readonly end: number } {
  const start = text.startsWith("\uFEFF") ? 1 : 0;
  const head = text.slice(start, start + FRONT_MATTER);
  const first = /^---[ \t]*\r?\n(?:\s*#[^\n]*\n)*\s*["']?[\w$@][\w $@.-]{0,100}["']?[ \t]*:/u;
  const close = first.test(head) ? /\n(?:---|\.\.\.)[ \t]*(?:\r?\n|$)/u.exec(head) : null;
  if (close === null) return { yaml: "", end: start };
  return { yaml: head.slice(0, close.index), end: start + close.index + close[0].length };
}
