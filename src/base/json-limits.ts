/**
 * Measures JSON by its bytes before it is parsed: its nesting depth and its number of members. Everything that walks
 * parsed values (JSON.stringify, schema checks, masking) is slow with deep ones: 90 KB nested 45,000 levels deep
 * blocked JSON.stringify for a second. Wide ones are slow to parse and to walk: 8 MB of integer keys blocked the
 * event loop for four seconds.
 */

/** Maximum nesting depth of JSON from outside (contract, section 3). */
export const MAX_NESTING = 100;

/**
 * Maximum number of members in JSON from outside: items of all arrays and properties of all objects. An empty array
 * or object counts as one more, and a property whose name may be an integer as four. An upstream's answer with this
 * many members takes at worst about 0.15 s on its way to the client.
 */
export const MAX_MEMBERS = 50_000;

/**
 * The extra count of a property whose name begins with a digit: JavaScriptCore stores integer names in sparse arrays,
 * which take four times as long to parse, copy and write.
 */
const FOR_INTEGER_NAME = 3;

export interface JsonLimits {
  /** Default: MAX_NESTING. */
  readonly levels?: number;
  /** Default: MAX_MEMBERS. */
  readonly members?: number;
  /**
   * Maximum number of strings, including keys. For JSON that may have many members if they are numbers. Default: no
   * separate limit.
   */
  readonly strings?: number;
  /** Maximum number of arrays and objects. For the same JSON. Default: no separate limit. */
  readonly containers?: number;
}

/** The limit that JSON exceeds. */
export type JsonExcess = keyof JsonLimits;

/** How many bytes of a string are read one by one, before the native search for its end becomes faster. */
const SHORT_STRING = 32;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const LEFT_BRACKET = 0x5b;
const RIGHT_BRACKET = 0x5d;
const COMMA = 0x2c;
const COLON = 0x3a;
const ZERO = 0x30;
const NINE = 0x39;
/** Clears the bit in which `{` differs from `[`, and `}` from `]`. */
const AS_BRACKET = 0xffdf;

const ENCODER = new TextEncoder();

/** JSON from outside has too many levels, members, strings or containers. */
export class JsonTooLarge extends Error {
  override readonly name = "JsonTooLarge";
  readonly excess: JsonExcess;

  constructor(excess: JsonExcess, limits?: JsonLimits) {
    super(describeLimit(excess, limits));
    this.excess = excess;
  }
}

/** The limit as text: `JSON may have 100 levels`. */
function describeLimit(
  excess: JsonExcess,
  { levels = MAX_NESTING, members = MAX_MEMBERS, strings = members, containers = members }: JsonLimits = {},
): string {
  return `JSON may have ${{ levels, members, strings, containers }[excess]} ${excess}`;
}

/** The first limit that JSON exceeds, given as text or UTF-8. Null if it exceeds none. */
export function findExcess(json: string | Uint8Array, limits: JsonLimits = {}): JsonExcess | null {
  // Each level, member, string and container takes at least one character.
  if (
    json.length <=
    Math.min(
      limits.levels ?? MAX_NESTING,
      limits.members ?? MAX_MEMBERS,
      limits.strings ?? Infinity,
      limits.containers ?? Infinity,
    )
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
 * Replaces every object and array below the first level with `null`: enough to read the id of a message that is
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

/** The position of the quote that ends a string, or the end of the text if there is none. */
export function endOfQuoted(text: string, start: number): number {
  for (let at = start; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at;
    if (code === BACKSLASH) at++;
  }
  return text.length;
}

/**
 * Measures UTF-8 JSON that arrives in parts of any size. Counts are exact for valid JSON. For anything else, they are
 * at least as high as what a parser has seen by the time it finds the error.
 */
export class JsonMeter {
  readonly #levels: number;
  readonly #members: number;
  readonly #strings: number;
  readonly #containers: number;
  #depth = 0;
  /** Commas and opening brackets, one of which precedes each member, plus the extra count of integer names. */
  #memberCount = 0;
  #stringCount = 0;
  #containerCount = 0;
  #isInString = false;
  /** Whether the last string may be an integer: it begins with a digit, or with an escape that may encode one. */
  #isInteger = false;
  /** Whether the previous part ended right after the opening quote of a string. */
  #isBeginning = false;
  /** Whether the previous part ended inside a string, right after a backslash. */
  #isEscaped = false;

  constructor({
    levels = MAX_NESTING,
    members = MAX_MEMBERS,
    strings = Infinity,
    containers = Infinity,
  }: JsonLimits = {}) {
    this.#levels = levels;
    this.#members = members;
    this.#strings = strings;
    this.#containers = containers;
  }

  /** The number of members so far. */
  get members(): number {
    return this.#memberCount;
  }

  /** Measures the next bytes. @returns the limit that the JSON exceeds, or null */
  add(part: Uint8Array): JsonExcess | null {
    const end = part.length;
    if (end === 0) return null;
    if (this.#isBeginning) this.#begin(part, 0);
    let at = this.#isInString ? this.#endOfString(part, 0) : 0;
    let depth = this.#depth;
    let members = this.#memberCount;
    for (; at < end; at++) {
      const byte = part[at] ?? 0;
      if (byte < LEFT_BRACKET) {
        if (byte === QUOTE) {
          if (++this.#stringCount > this.#strings) return "strings";
          this.#begin(part, at + 1);
          at = this.#endOfString(part, at + 1) - 1;
        } else if (byte === COMMA) {
          if (++members > this.#members) return "members";
        } else if (byte === COLON && this.#isInteger) {
          members += FOR_INTEGER_NAME;
          if (members > this.#members) return "members";
        }
      } else {
        const bracket = byte & AS_BRACKET;
        if (bracket === LEFT_BRACKET) {
          if (++depth > this.#levels) return "levels";
          if (++members > this.#members) return "members";
          if (++this.#containerCount > this.#containers) return "containers";
        } else if (bracket === RIGHT_BRACKET && depth > 0) depth--;
      }
    }
    this.#depth = depth;
    this.#memberCount = members;
    return null;
  }

  /** Ends a line: a JSON string never continues on the next one. */
  endLine(): void {
    this.#isInString = false;
    this.#isEscaped = false;
    this.#isBeginning = false;
  }

  /** Resets the meter for the next text. */
  reset(): void {
    this.endLine();
    this.#depth = 0;
    this.#memberCount = 0;
    this.#stringCount = 0;
    this.#containerCount = 0;
  }

  /** @param at the position of a string's first character, or the end of the part */
  #begin(part: Uint8Array, at: number): void {
    const first = part[at];
    this.#isBeginning = first === undefined;
    this.#isInteger = first !== undefined && ((first >= ZERO && first <= NINE) || first === BACKSLASH);
  }

  /** @param at a position inside a string @returns the position after the string, or the end of the part */
  #endOfString(part: Uint8Array, at: number): number {
    let next = this.#isEscaped ? at + 1 : at;
    this.#isInString = true;
    this.#isEscaped = false;
    for (let nearby = next + SHORT_STRING; next < part.length; next++) {
      if (next >= nearby) {
        // No escapes so far. A quote preceded by an even number of backslashes ends the string.
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

/** The number of backslashes directly before `end`, not looking back beyond `start`. */
function backslashesBefore(part: Uint8Array, start: number, end: number): number {
  let at = end;
  while (at > start && part[at - 1] === BACKSLASH) at--;
  return end - at;
}
