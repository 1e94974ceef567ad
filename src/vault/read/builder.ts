import { type Block, MAX_BLOCKS, MAX_TEXT, type ReadDocument } from "./document.ts";
import { Fault } from "./fault.ts";

/**
 * Builds text from pieces, each a block. Limits are checked while it grows, so a small input that expands (a long
 * header repeated in every record) is refused before it exhausts memory.
 */
export class DocumentBuilder {
  readonly #parts: string[] = [];
  readonly #blocks: Block[] = [];
  #length = 0;

  /** Adds a block after `separator`. Blank text is ignored. */
  add(kind: Block["kind"], text: string, { level = 0, separator = "\n\n" } = {}): void {
    const piece = withoutControls(text);
    if (piece.trim() === "") return;
    if (this.#length > 0) this.#append(separator);
    const start = this.#length;
    this.#append(piece);
    this.#blocks.push({ kind, level, start, end: this.#length });
    checkBlocks(this.#blocks);
  }

  finish(): ReadDocument {
    return { text: this.#parts.join(""), blocks: this.#blocks };
  }

  #append(piece: string): void {
    this.#length += piece.length;
    checkLength(this.#length);
    this.#parts.push(piece);
  }
}

/** @throws Fault if text of this length is too long */
export function checkLength(length: number): void {
  if (length > MAX_TEXT)
    throw new Fault(`contains more than ${MAX_TEXT.toLocaleString("en")} characters of text`);
}

/** @throws Fault if there are too many blocks */
export function checkBlocks(blocks: readonly Block[]): void {
  if (blocks.length > MAX_BLOCKS) {
    throw new Fault(`contains more than ${MAX_BLOCKS.toLocaleString("en")} paragraphs or rows`);
  }
}

/** Removes control characters except tabs and line ends. Those that separate lines or pages become a space. */
export function withoutControls(text: string): string {
  return text
    .toWellFormed()
    .replace(/[\v\f\u0085]/gu, " ")
    .replace(/[^\P{Cc}\t\n\r]/gu, "");
}
