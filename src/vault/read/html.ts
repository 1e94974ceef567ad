import { Parser } from "htmlparser2";
import { DocumentBuilder } from "./builder.ts";
import type { Block, ReadDocument } from "./document.ts";
import { Fault } from "./fault.ts";
import { BLOCKS, headingLevel, isHidden, SKIPPED } from "./html-elements.ts";

/**
 * The deepest nesting. Browsers stop at 512; each closing tag costs as many comparisons as there are open elements.
 */
const MAX_DEPTH = 1_000;
/** The deepest nesting of tables read as tables. Deeper ones are plain text. */
const MAX_TABLES = 16;

interface HtmlBlock {
  readonly kind: Block["kind"];
  readonly level: number;
  readonly text: string;
  /** Whether it is a list item, which is placed close to the previous piece. */
  readonly item: boolean;
}

export interface HtmlOptions {
  /** XHTML closes elements with "/>". */
  readonly xhtml?: boolean;
}

/**
 * The text of a page as a reader would see it, one block for each heading, paragraph, list item, table row and piece
 * of code. Invalid HTML is read as browsers do, and refused only for its depth.
 * @throws Fault if it is nested too deeply, or the text is too long
 */
export function readHtml(html: string, options: HtmlOptions = {}): ReadDocument {
  const page = new HtmlText();
  const parser = new Parser(
    {
      onopentag: (name, attributes) => page.open(name, attributes),
      onclosetag: (name) => page.close(name),
      ontext: (text) => page.text(text),
    },
    { recognizeSelfClosing: options.xhtml === true, recognizeCDATA: options.xhtml === true },
  );
  parser.end(html);
  return page.finish();
}

/** Collects the text of elements as they open and close. Also used for other formats with equivalent elements. */
export class HtmlText {
  readonly #builder = new DocumentBuilder();
  /** Cells of the open rows, innermost last. */
  readonly #rows: HtmlBlock[][][] = [];
  /** For each open `tr`, whether it has a row in `#rows`. */
  readonly #tracked: boolean[] = [];
  #depth = 0;
  /** Depth of the element being skipped; 0 if none. */
  #skippedFrom = 0;
  #pre = 0;
  #level = 0;
  #item = false;
  #lines: string[] = [];
  #line = "";
  #last: HtmlBlock | null = null;

  open(name: string, attributes: Readonly<Record<string, string>>): void {
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) throw new Fault(`has elements nested more than ${MAX_DEPTH} levels deep`);
    if (this.#skippedFrom > 0) return;
    if (SKIPPED.has(name) || isHidden(attributes)) {
      // A form field or inline picture does not separate the surrounding text; a hidden block does.
      if (BLOCKS.has(name)) this.#flush();
      this.#skippedFrom = this.#depth;
      return;
    }
    if (name === "br") this.#break();
    else if (name === "img") this.#line += ` ${attributes.alt ?? ""} `;
    else if (BLOCKS.has(name)) this.#openBlock(name);
  }

  close(name: string): void {
    const depth = this.#depth;
    this.#depth -= 1;
    if (this.#skippedFrom > 0) {
      if (depth === this.#skippedFrom) this.#skippedFrom = 0;
      return;
    }
    if (BLOCKS.has(name)) this.#closeBlock(name);
  }

  text(text: string): void {
    if (this.#skippedFrom === 0) this.#line += text;
  }

  finish(): ReadDocument {
    this.#flush();
    return this.#builder.finish();
  }

  #openBlock(name: string): void {
    this.#flush();
    if (name === "pre") this.#pre += 1;
    this.#level = headingLevel(name) || this.#level;
    if (name === "li") this.#item = true;
    if (name === "tr") {
      const tracked = this.#rows.length < MAX_TABLES;
      this.#tracked.push(tracked);
      if (tracked) this.#rows.push([]);
    } else if (name === "td" || name === "th") this.#rows.at(-1)?.push([]);
  }

  #closeBlock(name: string): void {
    this.#flush();
    if (name === "pre") this.#pre = Math.max(0, this.#pre - 1);
    if (headingLevel(name) > 0) this.#level = 0;
    if (name === "li") this.#item = false;
    if (name === "tr" && this.#tracked.pop() === true) this.#closeRow(this.#rows.pop() ?? []);
  }

  /**
   * A table row is one block. Tables are also used for layout: if cells contain headings, code or further rows, or
   * only one cell has text, the pieces stay separate.
   */
  #closeRow(cells: readonly (readonly HtmlBlock[])[]): void {
    const filled = cells.filter((cell) => cell.length > 0);
    const plain = filled.every((cell) => cell.every(({ kind }) => kind === "paragraph"));
    if (!plain || (filled.length === 1 && (filled[0]?.length ?? 0) > 1)) {
      for (const piece of filled.flat()) this.#emit(piece);
    } else if (filled.length > 0) {
      const text = cells
        .map((cell) => cell.map((piece) => piece.text.replace(/\n/gu, " ")).join(" "))
        .join(" | ");
      this.#emit({ kind: "row", level: 0, text, item: false });
    }
  }

  #break(): void {
    if (this.#pre > 0) this.#line += "\n";
    else {
      this.#lines.push(this.#line);
      this.#line = "";
    }
  }

  /** Ends the current paragraph, if there is one. */
  #flush(): void {
    if (this.#line === "" && this.#lines.length === 0) return;
    const text = this.#gathered();
    this.#lines = [];
    this.#line = "";
    if (text === "") return;
    const [item, level] = [this.#item, this.#level];
    this.#item = false;
    // A heading is one block, so a wrong closing tag does not turn all following text into headings.
    this.#level = 0;
    const kind = level > 0 ? "heading" : this.#pre > 0 ? "code" : "paragraph";
    this.#emit({ kind, level, text: item ? `- ${text}` : text, item });
  }

  #gathered(): string {
    if (this.#pre > 0) return this.#line.replace(/^(?:[^\S\n]*\n)+/u, "").trimEnd();
    const lines = [...this.#lines, this.#line].map((line) => line.replace(/\s+/gu, " ").trim());
    return lines.filter((line) => line !== "").join(this.#level > 0 ? " " : "\n");
  }

  #emit(piece: HtmlBlock): void {
    const cell = this.#rows.at(-1)?.at(-1);
    if (cell !== undefined) {
      cell.push(piece);
      return;
    }
    const close =
      (piece.item && this.#last?.item === true) || (piece.kind === "row" && this.#last?.kind === "row");
    this.#builder.add(piece.kind, piece.text, { level: piece.level, separator: close ? "\n" : "\n\n" });
    this.#last = piece;
  }
}
