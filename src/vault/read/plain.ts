import { checkBlocks } from "./builder.ts";
import type { Block } from "./document.ts";

/** Paragraphs: runs of lines that are not blank. */
export function plainBlocks(text: string): readonly Block[] {
  const blocks: Block[] = [];
  let open: { start: number; end: number } | null = null;
  const close = () => {
    if (open === null) return;
    blocks.push({ kind: "paragraph", level: 0, ...open });
    checkBlocks(blocks);
    open = null;
  };
  for (let start = 0; start < text.length; ) {
    const newline = text.indexOf("\n", start);
    const end = newline === -1 ? text.length : newline;
    if (text.slice(start, end).trim() === "") close();
    else open = { start: open === null ? start : (open as { start: number }).start, end };
    start = end + 1;
  }
  close();
  return blocks;
}
