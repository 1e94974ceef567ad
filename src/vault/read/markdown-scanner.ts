import type { Block } from "./document.ts";

/** Longer lines are not treated as rules, underlines or table heads. */
const MAX_MARKS = 1_000;

const HEADING = /(#{1,6})(?=[ \t\r\n]|$)/y;
const FENCE = /(`{3,}(?=[^`\r\n]*(?:[\r\n]|$))|~{3,})/y;
const ITEM = /(?:[-+*]|(\d{1,9})[.)])(?=[ \t\r\n]|$)[ \t]{0,4}/y;
/** Prefixes of block quotes and list items. */
const MARKERS = /(?:[ \t>]|(?:[-+*]|\d{1,9}[.)])(?=[ \t])){0,100}/y;
const RAW_HTML = /<(?:!--|(?:script|pre|style|textarea)(?=[\s>]))/iy;
const RAW_HTML_END = /-->|<\/(?:script|pre|style|textarea)>/iu;
const UNDERLINE = /^(?:=+|-+)$/u;
const RULE = /^([-*_])[ \t]*(?:\1[ \t]*){2,}$/u;
const TABLE_RULE = /^\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?$/u;

interface SourceLine {
  readonly start: number;
  /** Offset of the line's end. */
  readonly end: number;
  /** Offset of the first character that is not a space or tab. */
  readonly text: number;
  /** Columns before that, with tab stops of 4. */
  readonly indent: number;
}

interface CodeFence {
  readonly mark: string;
  readonly start: number;
  readonly indent: number;
}

interface OpenBlock {
  readonly kind: "paragraph" | "code" | "table";
  readonly start: number;
  end: number;
  lines: number;
  /** Whether an underline can turn it into a heading. */
  readonly plain: boolean;
}

/**
 * The blocks of CommonMark (0.31, section 4) and the tables of GitHub's Markdown, as far as passages need them:
 * headings, code, list items, rows, paragraphs. Inline markup stays text.
 *
 * A single pass over the lines. Full parsers use roughly a hundred bytes per character and take a second for roughly
 * a hundred thousand characters of ordinary text, and minutes for a line of list markers. A test compares this scanner
 * with such a parser.
 */
export class MarkdownScanner {
  readonly #text: string;
  readonly #blocks: Block[] = [];
  #at: number;
  #open: OpenBlock | null = null;
  #fence: CodeFence | null = null;
  #rawHtml = false;
  /** Column where the outermost list item's content begins; 0 outside lists. */
  #item = 0;
  /** The same for the most recent list item, which may be nested. */
  #innerItem = 0;
  #afterBlank = true;
  /** Whether a line of text without markers would continue the quote or item above (lazy continuation). */
  #goesOn = false;

  constructor(text: string, start: number) {
    this.#text = text;
    this.#at = start;
  }

  blocks(): readonly Block[] {
    let last = this.#at;
    while (this.#at < this.#text.length) {
      const line = this.#nextLine();
      this.#take(line);
      if (line.text < line.end) last = line.end;
    }
    if (this.#fence !== null) this.#push("code", this.#fence.start, last);
    this.#close();
    return this.#blocks;
  }

  #nextLine(): SourceLine {
    const start = this.#at;
    const newline = this.#text.indexOf("\n", start);
    let end = newline === -1 ? this.#text.length : newline;
    this.#at = end + 1;
    if (end > start && this.#text[end - 1] === "\r") end -= 1;
    let text = start;
    let indent = 0;
    for (; text < end; text += 1) {
      if (this.#text[text] === " ") indent += 1;
      else if (this.#text[text] === "\t") indent += 4 - (indent % 4);
      else break;
    }
    return { start, end, text, indent };
  }

  #take(line: SourceLine): void {
    const blank = line.text === line.end;
    if (this.#fence !== null && !this.#leavesItem(line, blank)) {
      this.#insideFence(line, this.#fence);
    } else if (this.#rawHtml) {
      this.#continue(line);
      this.#rawHtml = !this.#endsRawHtml(line);
    } else if (blank) this.#close();
    else this.#takeText(line);
    this.#afterBlank = blank;
  }

  /** Code in a list item ends with the item. */
  #leavesItem(line: SourceLine, blank: boolean): boolean {
    if (this.#fence === null || blank || line.indent >= this.#item) return false;
    this.#push("code", this.#fence.start, line.start - 1);
    this.#fence = null;
    this.#item = 0;
    return true;
  }

  #takeText(line: SourceLine): void {
    const inItem = this.#item > 0 && line.indent >= this.#item;
    if (!inItem && (this.#afterBlank || this.#open === null)) this.#item = 0;
    if (inItem) {
      this.#takeInItem(line);
      return;
    }
    if (line.indent >= 4) {
      const ended = this.#open !== null && !this.#open.plain && this.#open.kind !== "code" && !this.#goesOn;
      if (this.#open === null || ended) this.#start("code", line, false);
      else this.#continue(line);
      return;
    }
    if (this.#startsHeading(line) || this.#startsFence(line, line.text) || this.#underlines(line)) return;
    if (this.#is(RULE, line)) {
      this.#close();
      this.#item = 0;
      return;
    }
    if (this.#startsItem(line)) return;
    if (this.#match(RAW_HTML, line.text) !== null) {
      this.#start("paragraph", line, false);
      this.#rawHtml = !this.#endsRawHtml(line);
      return;
    }
    if (this.#open?.kind === "code") this.#close();
    if (this.#startsTable(line)) return;
    const quoted = this.#text[line.text] === ">";
    const marked = this.#open !== null && !this.#open.plain;
    if (quoted ? this.#item > 0 || !marked : marked && !this.#goesOn) {
      this.#close();
      this.#item = 0;
    }
    this.#continue(line);
  }

  #takeInItem(line: SourceLine): void {
    if (line.indent < this.#innerItem + 4 && this.#startsFence(line, line.text)) return;
    // Nested items are blocks too; otherwise a long nested list would be a single block.
    const marker = this.#match(ITEM, line.text);
    if (marker !== null) {
      this.#innerItem = line.indent + marker[0].length;
      this.#start("paragraph", line, false);
    } else this.#continue(line);
  }

  #startsHeading(line: SourceLine): boolean {
    const marks = this.#match(HEADING, line.text);
    if (marks === null) return false;
    this.#close();
    this.#item = 0;
    this.#push("heading", line.text, line.end, marks[0].length);
    return true;
  }

  #startsFence(line: SourceLine, at: number): boolean {
    const mark = this.#match(FENCE, at)?.[0];
    if (mark === undefined) return false;
    this.#close();
    if (line.indent < this.#item) this.#item = 0;
    this.#fence = { mark, start: line.start, indent: Math.max(line.indent, this.#item) };
    return true;
  }

  #insideFence(line: SourceLine, fence: CodeFence): void {
    const rest = line.end - line.text > MAX_MARKS ? "" : this.#text.slice(line.text, line.end).trimEnd();
    const closes = rest.startsWith(fence.mark) && rest === fence.mark.charAt(0).repeat(rest.length);
    if (!closes || line.indent >= (this.#item > 0 ? fence.indent : 0) + 4) return;
    this.#push("code", fence.start, line.end);
    this.#fence = null;
  }

  /** A line of "=" or "-" turns the paragraph above it into a heading. */
  #underlines(line: SourceLine): boolean {
    const open = this.#open;
    if (open === null || !open.plain || open.kind !== "paragraph") return false;
    if (!this.#is(UNDERLINE, line)) return false;
    this.#open = null;
    this.#push("heading", open.start, line.end, this.#text[line.text] === "=" ? 1 : 2);
    return true;
  }

  #startsItem(line: SourceLine): boolean {
    const marker = this.#match(ITEM, line.text);
    if (marker === null) return false;
    const number = marker[1];
    const empty = line.text + marker[0].trimEnd().length === line.end;
    // "1986. A great year" may be the middle of a paragraph (CommonMark, section 5.2).
    if (this.#open?.plain === true && (empty || (number !== undefined && number !== "1"))) return false;
    const spaces = marker[0].length - marker[0].trimEnd().length;
    this.#item = line.indent + (spaces === 0 || empty ? marker[0].trimEnd().length + 1 : marker[0].length);
    this.#innerItem = this.#item;
    if (!this.#startsFence(line, line.text + marker[0].length)) this.#start("paragraph", line, false);
    return true;
  }

  /** The second line of a table identifies it. Each further line is a row. */
  #startsTable(line: SourceLine): boolean {
    const open = this.#open;
    if (open?.kind === "table") {
      this.#close();
      this.#start("table", line, false);
      return true;
    }
    if (open === null || !open.plain || open.lines !== 1 || !this.#is(TABLE_RULE, line)) return false;
    if (!this.#text.slice(open.start, line.end).includes("|")) return false;
    this.#open = { kind: "table", start: open.start, end: line.end, lines: 2, plain: false };
    return true;
  }

  #start(kind: OpenBlock["kind"], line: SourceLine, plain: boolean): void {
    this.#close();
    const start = kind === "code" ? line.start : line.text;
    this.#open = { kind, start, end: line.end, lines: 1, plain };
    this.#goesOn = this.#isText(line);
  }

  #continue(line: SourceLine): void {
    if (this.#open === null) {
      const quoted = this.#text[line.text] === ">";
      this.#start("paragraph", line, !quoted && this.#item === 0);
      return;
    }
    this.#open.end = line.end;
    this.#open.lines += 1;
    // At this indentation, markers are plain text.
    this.#goesOn = line.indent >= (this.#item > 0 ? this.#innerItem : 0) + 4 || this.#isText(line);
  }

  #close(): void {
    const open = this.#open;
    this.#open = null;
    if (open !== null) this.#push(open.kind === "table" ? "row" : open.kind, open.start, open.end);
  }

  #push(kind: Block["kind"], start: number, end: number, level = 0): void {
    this.#blocks.push({ kind, level, start, end });
  }

  #match(pattern: RegExp, at: number): RegExpExecArray | null {
    pattern.lastIndex = at;
    return pattern.exec(this.#text);
  }

  #is(pattern: RegExp, line: SourceLine): boolean {
    return line.end - line.text <= MAX_MARKS && pattern.test(this.#text.slice(line.text, line.end).trimEnd());
  }

  /** Whether the text after quote and list markers belongs to a paragraph. */
  #isText(line: SourceLine): boolean {
    const at = line.text + (this.#match(MARKERS, line.text)?.[0].length ?? 0);
    if (at >= line.end || this.#match(HEADING, at) !== null || this.#match(FENCE, at) !== null) return false;
    return !this.#is(RULE, { ...line, text: at });
  }

  #endsRawHtml(line: SourceLine): boolean {
    return RAW_HTML_END.test(this.#text.slice(line.text, line.end));
  }
}
