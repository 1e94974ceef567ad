import { ALL, type Characters, CLASSES, union, without } from "./characters.ts";

/**
 * The part of a regular expression's syntax that is supported. A set may be larger than what the expression matches,
 * never smaller. `nothing` matches the empty text; `start` is `^`.
 */
export type Expression =
  | { readonly kind: "set"; readonly characters: Characters }
  | { readonly kind: "start" | "nothing" }
  | { readonly kind: "group"; readonly inner: Expression }
  | { readonly kind: "sequence" | "choice"; readonly parts: readonly Expression[] }
  | { readonly kind: "repeat"; readonly inner: Expression; readonly least: number; readonly most: number };

/** The expression is not supported. Never leaves this folder. */
export class Unknown extends Error {
  override readonly name = "Unknown";
}

const NOTHING: Expression = { kind: "nothing" };
const CONTROLS: Readonly<Record<string, number | undefined>> = { t: 9, n: 10, v: 11, f: 12, r: 13, "0": 0 };

/**
 * Parses an expression that `new RegExp(source, "u")` accepts. Lookaround, back-references and inline flags are not
 * supported.
 * @throws Unknown
 */
export function parse(source: string): Expression {
  return new Parser(source).whole();
}

class Parser {
  readonly #source: readonly string[];
  #at = 0;

  constructor(source: string) {
    this.#source = [...source];
  }

  whole(): Expression {
    const expression = this.#choice();
    if (this.#at < this.#source.length) throw new Unknown();
    return expression;
  }

  #choice(): Expression {
    const parts = [this.#sequence()];
    while (this.#takes("|")) parts.push(this.#sequence());
    return parts.length === 1 ? (parts[0] ?? NOTHING) : { kind: "choice", parts };
  }

  #sequence(): Expression {
    const parts: Expression[] = [];
    for (;;) {
      const next = this.#peek();
      if (next === undefined || next === "|" || next === ")") return { kind: "sequence", parts };
      parts.push(this.#repeated(this.#atom()));
    }
  }

  #repeated(inner: Expression): Expression {
    const bounds = this.#bounds();
    if (!bounds) return inner;
    // Greedy or lazy only changes the order of the tries, not their number.
    this.#takes("?");
    return { kind: "repeat", inner, least: bounds[0], most: bounds[1] };
  }

  #bounds(): [number, number] | undefined {
    if (this.#takes("*")) return [0, Number.POSITIVE_INFINITY];
    if (this.#takes("+")) return [1, Number.POSITIVE_INFINITY];
    if (this.#takes("?")) return [0, 1];
    if (!this.#takes("{")) return undefined;
    const text = this.#upTo("}");
    const [, least = "", comma, most = ""] = /^(\d+)(,)?(\d*)$/.exec(text) ?? [];
    if (least === "") throw new Unknown();
    if (comma === undefined) return [Number(least), Number(least)];
    return [Number(least), most === "" ? Number.POSITIVE_INFINITY : Number(most)];
  }

  #atom(): Expression {
    const next = this.#next();
    switch (next) {
      case "^":
        return { kind: "start" };
      case "$":
        return NOTHING;
      case ".":
        return { kind: "set", characters: ALL };
      case "(":
        return this.#group();
      case "[":
        return { kind: "set", characters: this.#class() };
      case "\\":
        if (this.#takes("b") || this.#takes("B")) return NOTHING;
        return { kind: "set", characters: this.#escape() };
      default:
        return { kind: "set", characters: one(next) };
    }
  }

  #group(): Expression {
    if (this.#takes("?") && !this.#takes(":")) {
      if (!this.#takes("<") || this.#peek() === "=" || this.#peek() === "!") throw new Unknown();
      this.#upTo(">");
    }
    const inner = this.#choice();
    if (!this.#takes(")")) throw new Unknown();
    return { kind: "group", inner };
  }

  #class(): Characters {
    const isNegated = this.#takes("^");
    const sets: Characters[] = [];
    while (!this.#takes("]")) {
      const from = this.#member();
      const first = from[0]?.[0];
      if (this.#peek() !== "-" || this.#peek(1) === "]" || first === undefined) {
        sets.push(from);
        continue;
      }
      this.#next();
      const last = this.#member()[0]?.[1] ?? first;
      sets.push([[first, last]]);
    }
    const characters = union(sets);
    if (!isNegated) return characters;
    // Some sets are larger than what they represent (`\p{L}`). The complement of such a set is unknown.
    const isExact = characters[0]?.[1] !== ALL[0]?.[1] || characters[0]?.[0] !== 0;
    return isExact ? without(characters) : ALL;
  }

  #member(): Characters {
    const next = this.#next();
    if (next !== "\\") return one(next);
    // In a class, `\b` is the backspace.
    return this.#takes("b") ? one("\b") : this.#escape();
  }

  #escape(): Characters {
    const letter = this.#next();
    const known = CLASSES[letter];
    if (known) return known;
    const control = CONTROLS[letter];
    if (control !== undefined) return [[control, control]];
    if (letter === "p" || letter === "P") {
      this.#upTo("}");
      return ALL;
    }
    if (letter === "x") return this.#hexadecimal(this.#next() + this.#next());
    if (letter === "u") {
      if (this.#takes("{")) return this.#hexadecimal(this.#upTo("}"));
      return this.#hexadecimal(this.#next() + this.#next() + this.#next() + this.#next());
    }
    if (/[a-zA-Z0-9]/.test(letter)) throw new Unknown();
    return one(letter);
  }

  #hexadecimal(digits: string): Characters {
    const code = /^[0-9a-fA-F]+$/.test(digits) ? Number.parseInt(digits, 16) : Number.NaN;
    // Two surrogate halves may form one character.
    if (!(code <= 0x10ffff) || (code >= 0xd800 && code <= 0xdfff)) throw new Unknown();
    return [[code, code]];
  }

  #upTo(end: string): string {
    let text = "";
    for (let next = this.#next(); next !== end; next = this.#next()) text += next;
    return text;
  }

  #peek(ahead = 0): string | undefined {
    return this.#source[this.#at + ahead];
  }

  #next(): string {
    const next = this.#source[this.#at];
    if (next === undefined) throw new Unknown();
    this.#at += 1;
    return next;
  }

  #takes(text: string): boolean {
    if (this.#peek() !== text) return false;
    this.#at += 1;
    return true;
  }
}

function one(character: string): Characters {
  const code = character.codePointAt(0) ?? 0;
  return [[code, code]];
}
