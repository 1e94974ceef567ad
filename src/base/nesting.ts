/**
 * Counts how deeply JSON is nested before anything is parsed. JSON.parse takes any depth, but everything that walks its
 * values afterwards (JSON.stringify, schema checks, masking) is slow or fails on deep ones: 90 KB nested 45,000 deep held
 * up JSON.stringify for a second.
 */

/** How many objects and arrays may contain each other in JSON that comes from outside (contract, section 3). */
export const MAX_NESTING = 100;

/** Bytes of a string that are read one by one before the native search for its end is faster. */
const SHORT_STRING = 32;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const LEFT_BRACKET = 0x5b;
const RIGHT_BRACKET = 0x5d;
/** Clears the bit in which `{` differs from `[`, and `}` from `]`. */
const AS_BRACKET = 0xffdf;

const ENCODER = new TextEncoder();

/** JSON that is nested more deeply than `levels`. */
export class NestedTooDeep extends Error {
  override readonly name = "NestedTooDeep";

  constructor(levels: number = MAX_NESTING) {
    super(`JSON may have ${levels} levels of nesting`);
  }
}

/** Whether JSON, as text or as UTF-8, is nested more deeply than `levels`. */
export function isNestedTooDeep(json: string | Uint8Array, levels: number = MAX_NESTING): boolean {
  // Each level takes a character.
  if (json.length <= levels) return false;
  return !new NestingCounter(levels).add(typeof json === "string" ? ENCODER.encode(json) : json);
}

/** JSON.parse for text from outside. @throws NestedTooDeep before anything is parsed; SyntaxError */
export function parseJson(text: string, levels: number = MAX_NESTING): unknown {
  if (isNestedTooDeep(text, levels)) throw new NestedTooDeep(levels);
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
 * Counts the nesting of UTF-8 JSON that comes in parts of any size. For valid JSON the count is exact; for anything else it
 * is at least as high as the depth that a parser reaches before it finds the fault.
 */
export class NestingCounter {
  readonly #levels: number;
  #depth = 0;
  #isInString = false;
  /** The part before ended in a string, right behind a backslash. */
  #isEscaped = false;

  constructor(levels: number = MAX_NESTING) {
    this.#levels = levels;
  }

  /** Counts on. @returns whether the JSON is within the limit so far */
  add(part: Uint8Array): boolean {
    const end = part.length;
    let at = this.#isInString ? this.#endOfString(part, 0) : 0;
    let depth = this.#depth;
    for (; at < end; at++) {
      const byte = part[at] ?? 0;
      if (byte < LEFT_BRACKET) {
        if (byte === QUOTE) at = this.#endOfString(part, at + 1) - 1;
      } else {
        const bracket = byte & AS_BRACKET;
        if (bracket === LEFT_BRACKET) {
          if (++depth > this.#levels) return false;
        } else if (bracket === RIGHT_BRACKET && depth > 0) depth--;
      }
    }
    this.#depth = depth;
    return true;
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
