import { checkBlocks } from "./builder.ts";
import { type Block, type ReadDocument, titleOf } from "./document.ts";
import { MarkdownScanner } from "./markdown-scanner.ts";
import { plainBlocks } from "./plain.ts";

/** Front matter is looked for in the first characters of a file. */
const FRONT_MATTER = 65_536;

/** Markdown, stored as it is. Front matter belongs to the text but to no block. */
export function readMarkdown(text: string): ReadDocument {
  const front = frontMatter(text);
  const blocks = new MarkdownScanner(text, front.end).blocks();
  checkBlocks(blocks);
  const title = front.title ?? firstHeading(text, blocks);
  // Nothing but front matter: then that is what there is to search.
  return { text, title, blocks: blocks.length > 0 ? blocks : plainBlocks(text) };
}

function firstHeading(text: string, blocks: readonly Block[]): string | null {
  for (const { level, start, end } of blocks) {
    const title = level === 1 ? titleOf(text.slice(start, end)) : null;
    if (title !== null) return title;
  }
  return null;
}

/** YAML between two lines "---" at the very top, which starts with a key. (A line "---" alone may also be a rule.) */
function frontMatter(text: string): { readonly end: number; readonly title: string | null } {
  const start = text.startsWith("\uFEFF") ? 1 : 0;
  const head = text.slice(start, start + FRONT_MATTER);
  const none = { end: start, title: null };
  const first = /^---[ \t]*\r?\n(?:\s*#[^\n]*\n)*\s*["']?[\w$@][\w $@.-]{0,100}["']?[ \t]*:/u;
  if (!first.test(head)) return none;
  const close = /\n(?:---|\.\.\.)[ \t]*(?:\r?\n|$)/u.exec(head);
  if (close === null) return none;
  const stated = /\ntitle[ \t]*:[ \t]*(\S[^\r\n]*)/u.exec(head.slice(0, close.index))?.[1]?.trim();
  const title = stated?.replace(/^(["'])(.*)\1$/u, "$2") ?? "";
  return { end: start + close.index + close[0].length, title: /^[>|]/u.test(title) ? null : titleOf(title) };
}
