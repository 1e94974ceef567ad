import { Fault } from "./fault.ts";

/** The deepest nesting of objects and arrays. */
const MAX_DEPTH = 100;

/** A value that is neither object nor array, with its path. Numbers are as written, strings decoded. */
export interface JsonLeaf {
  /** Keys and indices from the top. Valid only during the call: the reader reuses it. */
  readonly path: readonly string[];
  readonly value: string;
}

interface Container {
  readonly close: "}" | "]";
  /** Index of the current member, from 0. */
  index: number;
}

const LITERAL = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

/**
 * Calls `leaf` for each value of JSON text (RFC 8259), in order. Unlike JSON.parse, it reports where the text is
 * invalid, keeps numbers exact and duplicate keys, and does not move integer-like keys to the front.
 * @throws Fault with line and column
 */
export function eachLeaf(text: string, leaf: (leaf: JsonLeaf) => void): void {
  const open: Container[] = [];
  const path: string[] = [];
  let at = 0;

  const fail = (expected: string): never => {
    const before = text.slice(0, at);
    const line = before.split("\n").length;
    const column = at - before.lastIndexOf("\n");
    const found = at < text.length ? JSON.stringify(text.slice(at, at + 1)) : "the end";
    throw new Fault(
      `is not valid JSON: expected ${expected}, found ${found} at line ${line}, column ${column}`,
    );
  };
  const skip = () => {
    for (; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
    }
  };
  const string = (): string => {
    const start = at;
    let escaped = false;
    for (at += 1; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (code === 0x22) break;
      if (code < 0x20) fail("a string without control characters");
      if (code !== 0x5c) continue;
      escaped = true;
      at += 1;
    }
    if (at >= text.length) fail('a closing "');
    at += 1;
    if (!escaped) return text.slice(start + 1, at - 1);
    try {
      return String(JSON.parse(text.slice(start, at)));
    } catch {
      at = start;
      return fail("a string with valid escapes");
    }
  };
  const member = (container: Container) => {
    skip();
    if (container.close === "]") {
      path.push(String(container.index));
      return;
    }
    if (text[at] !== '"') fail("a key in double quotes");
    path.push(string());
    skip();
    if (text[at] !== ":") fail('":"');
    at += 1;
  };

  if (text.startsWith("\uFEFF")) at = 1;
  value: while (true) {
    skip();
    const first = text[at];
    if (first === "{" || first === "[") {
      if (open.length === MAX_DEPTH) {
        throw new Fault(`has objects and arrays nested more than ${MAX_DEPTH} levels deep`);
      }
      const container: Container = { close: first === "{" ? "}" : "]", index: 0 };
      at += 1;
      skip();
      if (text[at] !== container.close) {
        open.push(container);
        member(container);
        continue;
      }
      at += 1;
    } else if (first === '"') {
      leaf({ path, value: string() });
    } else {
      LITERAL.lastIndex = at;
      const literal = LITERAL.exec(text)?.[0] ?? fail("a value");
      at += literal.length;
      leaf({ path, value: literal });
    }
    for (let container = open.at(-1); container !== undefined; container = open.at(-1)) {
      skip();
      path.pop();
      if (text[at] === ",") {
        at += 1;
        container.index += 1;
        member(container);
        continue value;
      }
      if (text[at] !== container.close) fail(`"," or "${container.close}"`);
      at += 1;
      open.pop();
    }
    skip();
    if (at < text.length) fail("nothing more");
    return;
  }
}
