import { checkBlocks } from "./builder.ts";
import type { Block } from "./document.ts";

/** Paragraphs: runs of non-blank lines. */
export function plainBlocks(text: string): readonly Block[] {
  const blocks: Block[] = [];
  /** Start of the current paragraph; -1 if there is none. */
  let start = -1;
  let end = 0;
  const close = () => {
    if (start === -1) return;
    blocks.push({ kind: "paragraph", level: 0, start, end });
    checkBlocks(blocks);
    start = -1;
  };
  for (let line = 0; line < text.length; ) {
    const newline = text.indexOf("\n", line);
    const lineEnd = newline === -1 ? text.length : newline;
    if (text.slice(line, lineEnd).trim() === "") close();
    else {
      if (start === -1) start = line;
      end = lineEnd;
    }
    line = lineEnd + 1;
  }
  close();
  return blocks;
}
