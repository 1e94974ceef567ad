import { endOfQuoted } from "../../base/json-limits.ts";
import { isMembers, type Members, parsedOrNothing } from "../json.ts";

/** A member that varies from one event to the next: a string or a whole number. */
export interface VaryingMember {
  /** The object that has the member. */
  readonly holder: Members;
  readonly name: string;
}

/** Finds the varying members of an event's value, always in the same order. Empty if it has none. */
export type FindVarying = (value: unknown) => readonly VaryingMember[];

/** The first of these members that is a string. */
export function textMember(value: unknown, names: readonly string[]): readonly VaryingMember[] {
  if (!isMembers(value)) return [];
  const name = names.find((each) => typeof value[each] === "string" && value[each] !== "");
  return name === undefined ? [] : [{ holder: value, name }];
}

const QUOTE = '"';
/** A string without escapes, as most are. The characters are those that RFC 8259, section 7, allows. */
const PLAIN_TEXT = /"[ !#-[\]-\uffff]*"/y;
const COLONS = [":", ": "];
/** A whole number that is read exactly, with nothing after it that belongs to a number. */
const WHOLE_NUMBER = /(?:0|[1-9]\d{0,14})(?![\d.eE+-])/y;
/** The text that replaces the varying members once, to find where each of them is written. */
const PROBE_TEXT = "gatehouse-probe-";
const PROBE_NUMBER = 734_502_819_300_000;

/**
 * The JSON of an event in which only certain members vary. In further events of this form, only those members are
 * read: parsing 200 chunks of 250 characters took five times as long.
 */
export class EventForm {
  /** The text before the first varying value, between the values, and after the last. */
  readonly #fixed: readonly string[];
  /** The varying members of `#value`, in the order in which they are written. */
  readonly #varying: readonly VaryingMember[];
  readonly #value: unknown;

  private constructor(fixed: readonly string[], varying: readonly VaryingMember[], value: unknown) {
    this.#fixed = fixed;
    this.#varying = varying;
    this.#value = value;
  }

  /**
   * @param value the parsed JSON, which the form takes over
   * @returns null if nothing varies, or if it is not certain where
   */
  static of(json: string, value: unknown, findVarying: FindVarying): EventForm | null {
    const varying = findVarying(value);
    if (varying.length === 0 || json.includes(PROBE_TEXT) || json.includes(String(PROBE_NUMBER))) return null;
    const places = varying
      .map((member) => ({ member, ...placeOf(json, member) }))
      .sort((a, b) => a.start - b.start);
    const fixed: string[] = [];
    let from = 0;
    for (const { start, end } of places) {
      if (start < from) return null;
      fixed.push(json.slice(from, start));
      from = end;
    }
    fixed.push(json.slice(from));
    const probes = places.map(({ member }, index) => probeOf(member, index));
    const probed = fixed.map((part, index) => (index === 0 ? "" : JSON.stringify(probes[index - 1])) + part);
    // If a probe is read as the member, then so is any other value at its position.
    const found = findVarying(parsedOrNothing(probed.join("")));
    const isProven = places.every(({ member }, index) => {
      const read = found[varying.indexOf(member)];
      return read?.name === member.name && read.holder[read.name] === probes[index];
    });
    if (!isProven) return null;
    const members = places.map(({ member }) => member);
    return new EventForm(fixed, members, value);
  }

  /**
   * The value of an event of this form. Undefined if it has another form or is not JSON. The value is valid until the
   * next call.
   */
  read(json: string): unknown {
    const fixed = this.#fixed;
    let at = 0;
    for (let index = 0; index < fixed.length; index++) {
      const part = fixed[index] ?? "";
      if (!json.startsWith(part, at)) return undefined;
      at += part.length;
      const member = this.#varying[index];
      if (!member) break;
      const read = readValue(json, at);
      if (typeof read?.value !== typeof member.holder[member.name]) return undefined;
      member.holder[member.name] = read?.value;
      at = read?.end ?? at;
    }
    return at === json.length ? this.#value : undefined;
  }
}

/** Where a member's value is written. Both positions are -1 if it is not found. */
function placeOf(json: string, { holder, name }: VaryingMember): { start: number; end: number } {
  const literal = JSON.stringify(holder[name]) ?? "";
  for (const colon of COLONS) {
    const key = JSON.stringify(name) + colon;
    const at = json.indexOf(key + literal);
    if (at >= 0) return { start: at + key.length, end: at + key.length + literal.length };
  }
  return { start: -1, end: -1 };
}

function probeOf({ holder, name }: VaryingMember, index: number): string | number {
  return typeof holder[name] === "string" ? PROBE_TEXT + index : PROBE_NUMBER + index;
}

/** The string or whole number that begins here, and the position after it. */
function readValue(json: string, at: number): { value: unknown; end: number } | undefined {
  const plain = endOf(PLAIN_TEXT, json, at);
  if (plain > 0) return { value: json.slice(at + 1, plain - 1), end: plain };
  const end = json[at] === QUOTE ? endOfQuoted(json, at + 1) + 1 : endOf(WHOLE_NUMBER, json, at);
  return end > 0 ? { value: parsedOrNothing(json.slice(at, end)), end } : undefined;
}

/** The position after a match that begins here; 0 if there is none. */
function endOf(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : 0;
}
