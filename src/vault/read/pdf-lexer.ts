import { Fault } from "./fault.ts";

export type PdfValue =
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "number"; readonly value: number }
  | { readonly kind: "reference" }
  | { readonly kind: "array"; readonly items: readonly PdfValue[] }
  | PdfDictionary
  | { readonly kind: "other" };

export interface PdfDictionary {
  readonly kind: "dictionary";
  /** The last value of a key counts, as with the parser. */
  readonly entries: ReadonlyMap<string, PdfValue>;
  /** Where a filter is named, once for each time: from the key to the token behind the value. */
  readonly filters: readonly { readonly from: number; readonly to: number }[];
}

interface Token {
  readonly kind: "end" | "command" | "name" | "number" | "string";
  readonly text: string;
  readonly from: number;
  readonly to: number;
}

/** What a token is refused for: where the parser finds this, it makes no object of what it was reading. */
class Unparsable extends Error {}

const MAX_DEPTH = 200;
const OTHER: PdfValue = { kind: "other" };
const FILTER_KEYS = ["F", "Filter"];

const SPACE = 1;
const DELIMITER = 2;
/** ISO 32000-1, 7.2.2. */
const CLASSES = new Uint8Array(256);
for (const code of [0, 9, 10, 12, 13, 32]) CLASSES[code] = SPACE;
for (const char of "%()<>[]{}/") CLASSES[char.charCodeAt(0)] = DELIMITER;

/** How many bytes may still be looked at, over all readers together: overlapping objects would cost the square. */
export class Budget {
  #left: number;

  constructor(bytes: number) {
    this.#left = bytes;
  }

  /** @throws Fault when there is none left */
  spend(bytes: number): void {
    this.#left -= bytes;
    if (this.#left < 0) throw new Fault("has parts that lie within each other over and over");
  }
}

/**
 * Reads PDF objects from a place in a file, and MUST see the same objects there as pdf.js does (its `Lexer` and `Parser`),
 * down to how it goes on after mistakes: the bound on a file rests on it.
 */
export class PdfReader {
  readonly #bytes: Uint8Array;
  readonly #budget: Budget;
  #at: number;
  #first: Token;
  #second: Token;

  constructor(bytes: Uint8Array, at: number, budget: Budget) {
    this.#bytes = bytes;
    this.#budget = budget;
    this.#at = at;
    this.#first = { kind: "end", text: "", from: at, to: at };
    this.#second = this.#first;
  }

  /**
   * The object that starts here, and where the data of its stream does if it is one; nothing where none can be made.
   * @throws Fault for one that can't be judged
   */
  read(): { readonly value: PdfValue; readonly data: number | null } | null {
    return this.#whole(() => {
      const value = this.#value(0);
      const stream = value.kind === "dictionary" && this.#isStream();
      return { value, data: stream ? this.#nextLine(this.#second.to) : null };
    });
  }

  /** The dictionary of an inline image, which starts here, behind `BI`. */
  readInline(): PdfDictionary | null {
    return this.#whole(() => {
      const entries = new Map<string, PdfValue>();
      // In a page's content a command ends where no known one goes on: "IDx" starts with ID.
      while (
        !(this.#first.kind === "command" && this.#first.text.startsWith("ID")) &&
        this.#first.kind !== "end"
      ) {
        if (this.#first.kind !== "name") return null;
        const key = this.#first.text;
        this.#shift();
        entries.set(key, this.#value(0));
      }
      return { kind: "dictionary", entries, filters: [] };
    });
  }

  #whole<T>(read: () => T | null): T | null {
    const start = this.#at;
    try {
      this.#shift();
      this.#shift();
      return read();
    } catch (error) {
      if (error instanceof Unparsable) return null;
      throw error;
    } finally {
      this.#budget.spend(this.#at - start);
    }
  }

  #value(depth: number): PdfValue {
    if (depth > MAX_DEPTH) throw new Fault("is nested too deeply");
    const token = this.#first;
    this.#shift();
    if (token.kind === "name") return { kind: "name", name: token.text };
    if (token.kind === "number") return this.#number(token.text);
    if (token.kind !== "command") return OTHER;
    if (token.text === "[") return this.#array(depth);
    if (token.text === "<<") return this.#dictionary(depth);
    // The parser would look for image data here.
    if (token.text === "BI" || token.text === "ID") throw new Fault("has an image where none can be");
    return OTHER;
  }

  #number(text: string): PdfValue {
    if (this.#first.kind === "number" && this.#second.kind === "command" && this.#second.text === "R") {
      this.#shift();
      this.#shift();
      return { kind: "reference" };
    }
    return { kind: "number", value: /^\d{1,10}$/u.test(text) ? Number(text) : Number.NaN };
  }

  #array(depth: number): PdfValue {
    const items: PdfValue[] = [];
    while (!this.#is("]")) {
      if (this.#first.kind === "end") throw new Unparsable();
      items.push(this.#value(depth + 1));
    }
    this.#shift();
    return { kind: "array", items };
  }

  #dictionary(depth: number): PdfDictionary {
    const entries = new Map<string, PdfValue>();
    const filters: { from: number; to: number }[] = [];
    while (!this.#is(">>")) {
      if (this.#first.kind === "end") throw new Unparsable();
      const key = this.#first;
      this.#shift();
      if (key.kind !== "name") continue;
      const value = this.#value(depth + 1);
      if (FILTER_KEYS.includes(key.text)) filters.push({ from: key.from, to: this.#first.from });
      entries.set(key.text, value);
    }
    if (depth > 0 && this.#isStream()) throw new Fault("has a stream within another object");
    // At the top the closing token stays in hand: what follows is looked at, not read.
    if (depth > 0) this.#shift();
    return { kind: "dictionary", entries, filters };
  }

  #isStream(): boolean {
    return this.#second.kind === "command" && this.#second.text === "stream";
  }

  #is(command: string): boolean {
    return this.#first.kind === "command" && this.#first.text === command;
  }

  #shift(): void {
    this.#first = this.#second;
    this.#second = this.#token();
  }

  #token(): Token {
    const bytes = this.#bytes;
    this.#skipSpace();
    const from = this.#at;
    const code = bytes[from];
    if (code === undefined) return { kind: "end", text: "", from, to: from };
    switch (code) {
      case 0x28:
        return this.#string(from);
      case 0x29:
        throw new Unparsable();
      case 0x2f:
        return this.#name(from);
      case 0x3c:
        if (bytes[from + 1] !== code) return this.#hexString(from);
        return this.#command(from, 2);
      case 0x3e:
        return this.#command(from, bytes[from + 1] === code ? 2 : 1);
    }
    if (CLASSES[code] === DELIMITER) return this.#command(from, 1);
    const number = isNumeric(code);
    let to = from + 1;
    while (to < bytes.length && CLASSES[bytes[to] ?? 0] === 0 && (!number || this.#isOfNumber(to))) to += 1;
    this.#at = to;
    return {
      kind: number ? "number" : "command",
      text: latin(bytes, from, Math.min(to, from + 32)),
      from,
      to,
    };
  }

  #isOfNumber(at: number): boolean {
    const code = this.#bytes[at] ?? 0;
    // "E" is of the number where an exponent follows, and a word of its own otherwise.
    return isNumeric(code) || ((code | 0x20) === 0x65 && isNumeric(this.#bytes[at + 1] ?? 0));
  }

  #command(from: number, length: number): Token {
    this.#at = from + length;
    return { kind: "command", text: latin(this.#bytes, from, this.#at), from, to: this.#at };
  }

  #name(from: number): Token {
    const bytes = this.#bytes;
    let to = from + 1;
    while (to < bytes.length && CLASSES[bytes[to] ?? 0] === 0) to += 1;
    this.#at = to;
    const text = latin(bytes, from + 1, Math.min(to, from + 256));
    const plain = text.replace(/#([0-9a-f]{2})/giu, (_, hex) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    );
    return { kind: "name", text: plain, from, to };
  }

  #string(from: number): Token {
    const bytes = this.#bytes;
    let depth = 0;
    let to = from;
    for (; to < bytes.length; to += 1) {
      const code = bytes[to];
      if (code === 0x5c) to += 1;
      else if (code === 0x28) depth += 1;
      else if (code === 0x29 && --depth === 0) break;
    }
    this.#at = Math.min(to + 1, bytes.length);
    return { kind: "string", text: "", from, to: this.#at };
  }

  #hexString(from: number): Token {
    const end = this.#bytes.indexOf(0x3e, from);
    this.#at = end === -1 ? this.#bytes.length : end + 1;
    return { kind: "string", text: "", from, to: this.#at };
  }

  #skipSpace(): void {
    const bytes = this.#bytes;
    for (let comment = false; this.#at < bytes.length; this.#at += 1) {
      const code = bytes[this.#at] ?? 0;
      if (comment) comment = code !== 10 && code !== 13;
      else if (code === 0x25) comment = true;
      else if (CLASSES[code] !== SPACE) return;
    }
  }

  #nextLine(from: number): number {
    const bytes = this.#bytes;
    let at = from;
    while (at < bytes.length && bytes[at] !== 10 && bytes[at] !== 13) at += 1;
    return at + (bytes[at] === 13 && bytes[at + 1] === 10 ? 2 : 1);
  }
}

function isNumeric(code: number): boolean {
  return (code >= 0x30 && code <= 0x39) || code === 0x2b || code === 0x2d || code === 0x2e;
}

function latin(bytes: Uint8Array, from: number, to: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1", from, to);
}
