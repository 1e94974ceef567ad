import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  type YAMLError,
} from "yaml";

/** A configuration file, independent of YAML. `line` is the line of the value's key, starting at 1. */
export type Tree =
  | { readonly form: "map"; readonly line: number; readonly entries: ReadonlyMap<string, Tree> }
  | { readonly form: "list"; readonly line: number; readonly items: readonly Tree[] }
  | { readonly form: "scalar"; readonly line: number; readonly value: string | number | boolean | null };

/**
 * Why a file cannot be parsed as YAML. Reveals nothing of its content except a key's name, because it may contain
 * secrets.
 */
export interface SyntaxProblem {
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

const MAX_NODES = 100_000;
const MAX_DEPTH = 16;
const MAX_ALIASES = 100;

/** Own messages, because the library's quote the source. */
const MESSAGES: Partial<Record<YAMLError["code"], string>> = {
  BAD_ALIAS: "an alias has no name",
  BAD_DQ_ESCAPE:
    "a backslash in double quotes starts an unknown escape; use single quotes or double the backslash",
  BAD_INDENT: "the indentation is wrong, or a [ or { is not closed",
  BAD_SCALAR_START: "a value cannot start with @ or `; put it in quotes",
  BLOCK_AS_IMPLICIT_KEY: "a mapping cannot start here; put a value that contains `: ` in quotes",
  MISSING_CHAR: "a quote, comma or colon is missing",
  MULTILINE_IMPLICIT_KEY: "a key must be on one line, followed by a colon",
  MULTIPLE_DOCS: "a second document starts here; the file must contain only one",
  RESOURCE_EXHAUSTION: "the nesting is too deep",
  TAB_AS_INDENT: "a tab indents the line; use spaces",
  TAG_RESOLVE_FAILED: "tags (!name) are not supported",
  UNEXPECTED_TOKEN: "this is unexpected here; put a value with special characters in quotes",
};

/** Parses YAML 1.2: one document with a mapping at the top. An empty file is an empty mapping. */
export function parseTree(text: string): Tree | readonly SyntaxProblem[] {
  const lines = new LineCounter();
  // uniqueKeys compares all pairs, which takes minutes for a file of 1 MiB. The builder below finds duplicates by
  // hash.
  const options = { uniqueKeys: false, prettyErrors: false, lineCounter: lines, logLevel: "error" } as const;
  const document = parseDocument(text, options);
  const refused = [...document.errors, ...document.warnings].sort((a, b) => a.pos[0] - b.pos[0]);
  if (refused.length > 0) {
    return refused.slice(0, 3).map(({ code, pos }) => ({
      ...position(lines, pos[0]),
      message: MESSAGES[code] ?? "this is not valid YAML",
    }));
  }
  const builder = new Builder(document, lines);
  try {
    const tree = builder.build(document.contents, 1, 0);
    if (tree.form === "map") return tree;
    if (tree.form === "scalar" && tree.value === null) return { form: "map", line: 1, entries: new Map() };
    return [{ line: tree.line, column: 1, message: "the file must be a mapping: lines of `setting: value`" }];
  } catch (cause) {
    if (cause instanceof UnsupportedYaml)
      return [{ ...position(lines, cause.offset), message: cause.message }];
    throw cause;
  }
}

function position(lines: LineCounter, offset: number): { line: number; column: number } {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(1, line), column: Math.max(1, col) };
}

class UnsupportedYaml extends Error {
  readonly offset: number;
  constructor(offset: number, message: string) {
    super(message);
    this.offset = offset;
  }
}

/**
 * Converts YAML's nodes to a tree. Counts the content repeated by aliases, so that a small file cannot expand without
 * limit.
 */
class Builder {
  readonly #document: Document.Parsed;
  readonly #lines: LineCounter;
  #nodes = 0;
  #aliases = 0;

  constructor(document: Document.Parsed, lines: LineCounter) {
    this.#document = document;
    this.#lines = lines;
  }

  /** @param line the line of the key, for values that begin on a later line */
  build(node: unknown, line: number, depth: number): Tree {
    const offset = offsetOf(node);
    if (++this.#nodes > MAX_NODES)
      throw new UnsupportedYaml(offset, `the file has more than ${MAX_NODES} values`);
    if (depth > MAX_DEPTH) throw new UnsupportedYaml(offset, "the nesting is too deep");
    if (isAlias(node)) {
      if (++this.#aliases > MAX_ALIASES)
        throw new UnsupportedYaml(offset, `more than ${MAX_ALIASES} aliases are used`);
      const target = node.resolve(this.#document);
      if (target === undefined)
        throw new UnsupportedYaml(offset, "an alias names an anchor that does not exist");
      return this.build(target, line, depth + 1);
    }
    if (isMap(node)) return { form: "map", line, entries: this.#entries(node.items, depth) };
    if (isSeq(node)) {
      const items = node.items.map((item) => this.build(item, this.#lineOf(item, line), depth + 1));
      return { form: "list", line, items };
    }
    const value = isScalar(node) ? node.value : null;
    if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") {
      return { form: "scalar", line, value };
    }
    return { form: "scalar", line, value: null };
  }

  #entries(pairs: readonly { key: unknown; value: unknown }[], depth: number): ReadonlyMap<string, Tree> {
    const entries = new Map<string, Tree>();
    for (const { key, value } of pairs) {
      const offset = offsetOf(key);
      const name = isScalar(key) ? key.value : undefined;
      if (typeof name !== "string" && typeof name !== "number" && typeof name !== "boolean") {
        throw new UnsupportedYaml(offset, "a key must be a word or a number");
      }
      const known = entries.get(String(name));
      if (known) throw new UnsupportedYaml(offset, `the key is repeated; it is first on line ${known.line}`);
      entries.set(String(name), this.build(value, this.#lineOf(key, 1), depth + 1));
    }
    return entries;
  }

  #lineOf(node: unknown, otherwise: number): number {
    const offset = offsetOf(node);
    return offset === 0 && node === null ? otherwise : position(this.#lines, offset).line;
  }
}

function offsetOf(node: unknown): number {
  if (isAlias(node) || isMap(node) || isSeq(node) || isScalar(node)) return node.range?.[0] ?? 0;
  return 0;
}
