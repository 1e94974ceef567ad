import { type Block, MAX_BLOCKS, MAX_TEXT, type ReadDocument } from "./document.ts";
import { Fault } from "./fault.ts";

/**
 * Text that is put together from pieces, each a block. It grows within the caps only: a small input that unfolds (a long
 * header repeated in every record) is refused before it fills the memory.
 */
export class DocumentBuilder {
  readonly #parts: string[] = [];
  readonly #blocks: Block[] = [];
  #length = 0;

  /** Adds a block, `separator` between it and the one before. Nothing happens where `text` is blank. */
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

/** @throws Fault where a text of this length is too long. */
export function checkLength(length: number): void {
  if (length > MAX_TEXT)
    throw new Fault(`holds more than ${MAX_TEXT.toLocaleString("en")} characters of text`);
}

/** @throws Fault where these are too many blocks. */
export function checkBlocks(blocks: readonly Block[]): void {
  if (blocks.length > MAX_BLOCKS) {
    throw new Fault(`falls into more than ${MAX_BLOCKS.toLocaleString("en")} paragraphs or rows`);
  }
}

/** Drops control characters other than tab and line ends; those that part lines or pages become a space. */
export function withoutControls(text: string): string {
  return text
    .toWellFormed()
    .replace(/[\v\f\u0085]/gu, " ")
    .replace(/[^\P{Cc}\t\n\r]/gu, "");
}
