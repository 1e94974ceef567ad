import { Problem } from "../base/errors.ts";

/** The bytes of a value in JSON. */
export interface Span {
  readonly start: number;
  /** After the last byte. */
  readonly end: number;
}

/** The value of a member of a JSON object. */
export interface MemberSpan extends Span {
  /** Where its name begins, with the quote. */
  readonly nameStart: number;
}

/** The members that a request reader uses, by name, and where the object ends. */
export interface RequestMembers {
  readonly spans: ReadonlyMap<string, MemberSpan>;
  /** The position of the closing brace. */
  readonly close: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const LEFT_BRACE = 0x7b;
const RIGHT_BRACKET = 0x5d;
/** The mask that clears the bit in which `{` differs from `[`, and `}` from `]`. */
const AS_BRACKET = 0xdf;
const LEFT_BRACKET = 0x5b;

/**
 * Finds members of an object by name, so that the rest of a request can be passed on byte for byte. Names may contain
 * escapes.
 * @param bytes valid JSON
 * @param from where the object begins. Default: the outermost object
 * @throws Problem 400 `invalid_json` if the JSON is not an object, or has one of the names twice or in different
 *   case. JSON.parse takes the last of two members, but a provider may take the first, or accept `Model`, so the
 *   policy would have checked a different model
 */
export function findMembers(bytes: Uint8Array, { byFolded: wanted }: MemberNames, from = 0): RequestMembers {
  const spans = new Map<string, MemberSpan>();
  let at = bytes.indexOf(LEFT_BRACE, from) + 1;
  if (at === 0 || !isBlank(bytes, from, at - 1)) throw invalid("The body is not a JSON object.");
  for (;;) {
    const quote = skipBlank(bytes, at);
    if (bytes[quote] !== QUOTE) return { spans, close: quote };
    const nameEnd = endOfString(bytes, quote);
    const name = JSON.parse(textOf(bytes, quote, nameEnd)) as string;
    const start = skipBlank(bytes, skipBlank(bytes, nameEnd) + 1);
    const end = endOfValue(bytes, start);
    const meant = wanted.get(folded(name));
    if (meant !== undefined) {
      if (name !== meant) throw invalid(`The body has ${JSON.stringify(name)}. Write it as ${meant}.`);
      if (spans.has(name)) throw invalid(`The body has ${JSON.stringify(name)} twice.`);
      spans.set(name, { nameStart: quote, start, end });
    }
    at = skipBlank(bytes, end);
    if (bytes[at] !== COMMA) return { spans, close: at };
    at++;
  }
}

/** The elements of an array; none if the value is not an array. @param bytes valid JSON */
export function elementsOf(bytes: Uint8Array, { start, end }: Span): readonly Span[] {
  const elements: Span[] = [];
  if (bytes[start] !== LEFT_BRACKET) return elements;
  for (let at = skipBlank(bytes, start + 1); at < end - 1; at = skipBlank(bytes, at)) {
    const last = endOfValue(bytes, at);
    elements.push({ start: at, end: last });
    at = skipBlank(bytes, last) + 1;
  }
  return elements;
}

/** A name that is longer in the bytes cannot match: each letter is at most an escape of six bytes. */
const LONGEST_NAME = 128;
const NO_HOLDERS: ReadonlySet<string> = new Set();

/**
 * Yields the strings of all members with these names, at any depth and in any case of the letters. The value may be a
 * string or an array of strings. A name that occurs twice in an object is found twice.
 *
 * Makes one pass, however deeply the value is nested. Reading to the end of each member found would take time
 * proportional to depth times length: 3 s for 10 MB.
 *
 * @param bytes valid JSON
 * @param skipped names of members that are not searched
 * @param holders names whose value may also be an object with an `id`. The `id` is then the member's text
 */
export function* textsWithin(
  bytes: Uint8Array,
  names: MemberNames,
  skipped: ReadonlySet<string>,
  holders: ReadonlySet<string> = NO_HOLDERS,
): Generator<{ readonly name: string; readonly text: string }> {
  // Shorter names, which are most names, are not read. Includes the quotes; escapes only make a name longer.
  const shortest = Math.min(...[...names.byFolded.keys(), ...skipped].map(({ length }) => length)) + 2;
  /** For each open object or array: the wanted member whose array it is, if any. */
  const open: (string | undefined)[] = [];
  /** The same for objects with an `id`. */
  const holding: (string | undefined)[] = [];
  /** The wanted member whose value begins here. */
  let member: string | undefined;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    if (byte === QUOTE) {
      const end = endOfString(bytes, at);
      const length = end - at;
      const owner = member ?? open.at(-1);
      const start = at;
      at = end - 1;
      const holder = holding.at(-1);
      if (!owner && !holder && (length < shortest || length > LONGEST_NAME)) continue;
      const colon = skipBlank(bytes, end);
      if (bytes[colon] !== COLON) {
        if (owner !== undefined) yield { name: owner, text: JSON.parse(textOf(bytes, start, end)) as string };
        continue;
      }
      const name = JSON.parse(textOf(bytes, start, end)) as string;
      at = colon;
      if (skipped.has(name)) at = endOfValue(bytes, skipBlank(bytes, colon + 1)) - 1;
      else member = names.byFolded.get(folded(name)) ?? (folded(name) === "id" ? holder : undefined);
      continue;
    }
    const bracket = byte >= LEFT_BRACKET ? byte & AS_BRACKET : 0;
    if (bracket === LEFT_BRACKET) {
      const isArray = byte === LEFT_BRACKET;
      open.push(isArray ? member : undefined);
      holding.push(!isArray && member !== undefined && holders.has(member) ? member : undefined);
    } else if (bracket === RIGHT_BRACKET) {
      open.pop();
      holding.pop();
    }
    if (bracket === LEFT_BRACKET || byte === COMMA) member = undefined;
  }
}

/** Names of members to search for in many objects. */
export class MemberNames {
  readonly byFolded: ReadonlyMap<string, string>;

  constructor(names: readonly string[]) {
    this.byFolded = new Map(names.map((name) => [folded(name), name]));
  }
}

/**
 * A name in a form that ignores case, as some servers do. For them, two non-ASCII characters also count as `s` and
 * `k`.
 */
export function folded(name: string): string {
  return name.toUpperCase().toLowerCase();
}

/** Replaces some bytes with text. With an empty span, inserts the text. */
export interface Edit extends Span {
  readonly text: string;
}

/** The bytes with all edits made. The edits MUST NOT overlap. */
export function edited(bytes: Uint8Array, edits: readonly Edit[]): Uint8Array<ArrayBuffer> {
  const parts: Uint8Array[] = [];
  let from = 0;
  for (const { start, end, text } of edits.toSorted((a, b) => a.start - b.start)) {
    parts.push(bytes.subarray(from, start), Buffer.from(text));
    from = end;
  }
  return Buffer.concat([...parts, bytes.subarray(from)]);
}

/**
 * The edits that remove elements of one array, or members of one object, together with their commas.
 * @param removed in byte order. A member begins with its name
 */
export function removals(bytes: Uint8Array, removed: readonly Span[]): readonly Edit[] {
  const runs: { readonly start: number; end: number }[] = [];
  for (const { start, end } of removed) {
    const last = runs.at(-1);
    const isNext = last && skipBlank(bytes, skipBlank(bytes, last.end) + 1) === start;
    if (isNext) last.end = end;
    else runs.push({ start, end });
  }
  return runs.map(({ start, end }) => {
    const after = skipBlank(bytes, end);
    if (bytes[after] === COMMA) return { start, end: skipBlank(bytes, after + 1), text: "" };
    const before = trimmed(bytes, 0, start) - 1;
    return { start: bytes[before] === COMMA ? before : start, end, text: "" };
  });
}

/** @param at the position of a string's first quote @returns the position after its last one */
function endOfString(bytes: Uint8Array, at: number): number {
  let end = bytes.indexOf(QUOTE, at + 1);
  while (isEscaped(bytes, end)) end = bytes.indexOf(QUOTE, end + 1);
  return end + 1;
}

/** Whether an odd number of backslashes precedes this position. */
function isEscaped(bytes: Uint8Array, at: number): boolean {
  let first = at;
  while (bytes[first - 1] === BACKSLASH) first--;
  return (at - first) % 2 === 1;
}

/** @returns the position after the value that begins here */
function endOfValue(bytes: Uint8Array, start: number): number {
  let depth = 0;
  for (let at = start; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    if (byte === QUOTE) {
      at = endOfString(bytes, at) - 1;
      if (depth === 0) return at + 1;
      continue;
    }
    const bracket = byte & AS_BRACKET;
    if (byte >= LEFT_BRACKET && bracket === LEFT_BRACKET) depth++;
    else if (byte >= LEFT_BRACKET && bracket === RIGHT_BRACKET) {
      if (depth === 0) return trimmed(bytes, start, at);
      if (--depth === 0) return at + 1;
    } else if (byte === COMMA && depth === 0) return trimmed(bytes, start, at);
  }
  return bytes.length;
}

/** The end of a number or word, without trailing white space. */
function trimmed(bytes: Uint8Array, start: number, end: number): number {
  let last = end;
  while (last > start && isBlankByte(bytes[last - 1])) last--;
  return last;
}

function skipBlank(bytes: Uint8Array, from: number): number {
  let at = from;
  while (isBlankByte(bytes[at])) at++;
  return at;
}

function isBlank(bytes: Uint8Array, from: number, to: number): boolean {
  return skipBlank(bytes, from) >= to;
}

function isBlankByte(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

function textOf(bytes: Uint8Array, start: number, end: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString();
}

function invalid(detail: string): Problem {
  return new Problem("invalid_json", detail);
}
