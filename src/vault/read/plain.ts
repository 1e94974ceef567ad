import { checkBlocks } from "./builder.ts";
import type { Block } from "./document.ts";

/** Paragraphs: runs of lines that are not blank. */
export function plainBlocks(text: string): readonly Block[] {
  const blocks: Block[] = [];
  /** Of the paragraph that is open; -1 where none is. */
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
