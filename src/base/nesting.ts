/**
 * Measures JSON over its bytes, before anything is parsed: how deeply it is nested, and how many members it has. Everything
 * that walks parsed values (JSON.stringify, schema checks, masking) is slow on deep ones: 90 KB nested 45,000 deep held up
 * JSON.stringify for a second. Wide ones take long to parse and to walk: 8 MB of integer keys held up the loop for four.
 */

/** How many objects and arrays may contain each other in JSON that comes from outside (contract, section 3). */
export const MAX_NESTING = 100;

/**
 * How many members JSON from outside may have: the items of all arrays and the properties of all objects. An empty array or
 * object counts as one more. In the worst shapes (sparse integer keys, an object for each item) a member takes 2 µs to
 * parse, and 1 to 3 µs each time that it is copied or written.
 */
export const MAX_MEMBERS = 50_000;

/** What JSON may have. */
export interface JsonLimits {
  /** Default: MAX_NESTING. */
  readonly levels?: number;
  /** Default: MAX_MEMBERS. */
  readonly members?: number;
  /** Strings, keys included. For JSON that may have many members if they are numbers. Default: no limit of their own. */
  readonly strings?: number;
}

/** The limit that JSON exceeds. */
export type JsonExcess = keyof JsonLimits;

/** Bytes of a string that are read one by one before the native search for its end is faster. */
const SHORT_STRING = 32;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const LEFT_BRACKET = 0x5b;
const RIGHT_BRACKET = 0x5d;
const COMMA = 0x2c;
/** Clears the bit in which `{` differs from `[`, and `}` from `]`. */
const AS_BRACKET = 0xffdf;

const ENCODER = new TextEncoder();

/** JSON from outside has more levels or members than it may. */
export class JsonTooLarge extends Error {
  override readonly name = "JsonTooLarge";
  readonly excess: JsonExcess;

  constructor(excess: JsonExcess, limits?: JsonLimits) {
    super(describeLimit(excess, limits));
    this.excess = excess;
  }
}

/** The limit in words: `JSON may have 100 levels`. */
function describeLimit(
  excess: JsonExcess,
  { levels = MAX_NESTING, members = MAX_MEMBERS, strings = members }: JsonLimits = {},
): string {
  return `JSON may have ${{ levels, members, strings }[excess]} ${excess}`;
}

/** The first limit that JSON, as text or as UTF-8, exceeds; null if it is within all of them. */
export function findExcess(json: string | Uint8Array, limits: JsonLimits = {}): JsonExcess | null {
  // Each level, member and string takes a character.
  if (
    json.length <=
    Math.min(limits.levels ?? MAX_NESTING, limits.members ?? MAX_MEMBERS, limits.strings ?? Infinity)
  )
    return null;
  return new JsonMeter(limits).add(typeof json === "string" ? ENCODER.encode(json) : json);
}

/** JSON.parse for text from outside. @throws JsonTooLarge before anything is parsed; SyntaxError */
export function parseJson(text: string, limits?: JsonLimits): unknown {
  const excess = findExcess(text, limits);
  if (excess) throw new JsonTooLarge(excess, limits);
  return JSON.parse(text);
}

/**
 * JSON with `null` in place of every object and array below the first level: enough to read the id of a message that is
 * nested too deeply to be parsed. Text that is not valid JSON stays invalid.
 */
export function outlineJson(text: string): string {
  const kept: string[] = [];
  let depth = 0;
  let from = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    const bracket = code & AS_BRACKET;
    if (code === QUOTE) at = endOfQuoted(text, at + 1);
    else if (bracket === LEFT_BRACKET && ++depth === 2) kept.push(text.slice(from, at), "null");
    else if (bracket === RIGHT_BRACKET && --depth === 1) from = at + 1;
  }
  if (depth < 2) kept.push(text.slice(from));
  return kept.join("");
}

/** Where the quote is that ends a string; the end of the text where there is none. */
function endOfQuoted(text: string, start: number): number {
  for (let at = start; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at;
    if (code === BACKSLASH) at++;
  }
  return text.length;
}

/**
 * Measures UTF-8 JSON that comes in parts of any size. For valid JSON the counts are exact; for anything else they are at
 * least as high as what a parser has seen when it finds the fault.
 */
export class JsonMeter {
  readonly #levels: number;
  readonly #members: number;
  readonly #strings: number;
  #depth = 0;
  /** Commas and opening brackets: one of them stands before each member, and a bracket before nothing. */
  #memberCount = 0;
  #stringCount = 0;
  #isInString = false;
  /** The part before ended in a string, right behind a backslash. */
  #isEscaped = false;

  constructor({ levels = MAX_NESTING, members = MAX_MEMBERS, strings = Infinity }: JsonLimits = {}) {
    this.#levels = levels;
    this.#members = members;
    this.#strings = strings;
  }

  /** Takes in the next bytes. @returns the limit that the JSON exceeds, or null while it exceeds none */
  add(part: Uint8Array): JsonExcess | null {
    const end = part.length;
    let at = this.#isInString ? this.#endOfString(part, 0) : 0;
    let depth = this.#depth;
    let members = this.#memberCount;
    for (; at < end; at++) {
      const byte = part[at] ?? 0;
      if (byte < LEFT_BRACKET) {
        if (byte === QUOTE) {
          if (++this.#stringCount > this.#strings) return "strings";
          at = this.#endOfString(part, at + 1) - 1;
        } else if (byte === COMMA && ++members > this.#members) return "members";
      } else {
        const bracket = byte & AS_BRACKET;
        if (bracket === LEFT_BRACKET) {
          if (++depth > this.#levels) return "levels";
          if (++members > this.#members) return "members";
        } else if (bracket === RIGHT_BRACKET && depth > 0) depth--;
      }
    }
    this.#depth = depth;
    this.#memberCount = members;
    return null;
  }

  /** A line has ended: no string of JSON goes on behind it. */
  endLine(): void {
    this.#isInString = false;
    this.#isEscaped = false;
  }

  /** Begins again, for the next text. */
  reset(): void {
    this.endLine();
    this.#depth = 0;
    this.#memberCount = 0;
    this.#stringCount = 0;
  }

  /** @param at a position inside of a string @returns the position behind it, or the end of the part */
  #endOfString(part: Uint8Array, at: number): number {
    let next = this.#isEscaped ? at + 1 : at;
    this.#isInString = true;
    this.#isEscaped = false;
    for (let nearby = next + SHORT_STRING; next < part.length; next++) {
      if (next >= nearby) {
        // No escape up to here. A quote with an even number of backslashes before it ends the string.
        const quote = part.indexOf(QUOTE, next);
        const end = quote < 0 ? part.length : quote;
        const escapes = backslashesBefore(part, next, end);
        if (quote < 0) {
          this.#isEscaped = escapes % 2 === 1;
          return part.length;
        }
        next = quote;
        if (escapes % 2 === 1) {
          nearby = next + SHORT_STRING;
          continue;
        }
      }
      const byte = part[next];
      if (byte === QUOTE) {
        this.#isInString = false;
        return next + 1;
      }
      if (byte === BACKSLASH) next++;
    }
    this.#isEscaped = next > part.length;
    return part.length;
  }
}

/** How many backslashes stand directly before `end`, not looking further back than `start`. */
function backslashesBefore(part: Uint8Array, start: number, end: number): number {
  let at = end;
  while (at > start && part[at - 1] === BACKSLASH) at--;
  return end - at;
}
