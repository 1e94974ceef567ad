import type { ResolvedValue } from "./config.ts";
import type { VariableLookup } from "./environment.ts";
import { interpret } from "./interpret.ts";
import { distance, nearest } from "./nearest.ts";
import type { ConfigProblem } from "./problems.ts";
import { plainName } from "./redact.ts";
import { isPlaceholder, type Setting } from "./setting.ts";
import { PLACEHOLDERS } from "./setting-kinds.ts";
import { SETTINGS } from "./table.ts";
import type { Tree } from "./tree.ts";

/** The settings in a file, and all its problems. */
export interface FileSettings {
  readonly values: readonly ResolvedValue[];
  readonly problems: readonly ConfigProblem[];
  /** The names of all providers, including those with mistakes. */
  readonly providers: ReadonlySet<string>;
  /** The names of all tiers, likewise. */
  readonly tiers: ReadonlySet<string>;
  /** Names of the variables used in `${…}`. */
  readonly variables: ReadonlySet<string>;
}

/**
 * Reads the table's settings from a file.
 * @param file its path, for messages
 */
export function readFileSettings(
  tree: Tree,
  file: string,
  lookUp: (name: string) => VariableLookup | undefined,
): FileSettings {
  const reader = new Reader(file, lookUp);
  reader.descend(tree, [], SETTINGS);
  return reader;
}

/** Walks the file along with the table. At each level, `rows` are the rows whose keys start with the current path. */
class Reader implements FileSettings {
  readonly values: ResolvedValue[] = [];
  readonly problems: ConfigProblem[] = [];
  readonly providers = new Set<string>();
  readonly tiers = new Set<string>();
  readonly variables = new Set<string>();
  readonly #file: string;
  readonly #lookUp: (name: string) => VariableLookup | undefined;

  constructor(file: string, lookUp: (name: string) => VariableLookup | undefined) {
    this.#file = file;
    this.#lookUp = lookUp;
  }

  descend(tree: Tree, path: readonly string[], rows: readonly Setting[]): void {
    if (tree.form === "scalar" && tree.value === null) return;
    if (tree.form !== "map") {
      const found = tree.form === "list" ? "a list" : "a single value";
      this.#refuse(path, tree.line, `is ${found}; expected ${contents(path.length, rows)}`);
      return;
    }
    for (const [name, child] of tree.entries) this.#entry(name, child, path, rows);
  }

  #entry(name: string, tree: Tree, parent: readonly string[], rows: readonly Setting[]): void {
    const depth = parent.length;
    const path = [...parent, name];
    const placeholder = rows[0]?.path[depth] ?? "";
    const named = isPlaceholder(placeholder);
    const matching = named ? rows : rows.filter((row) => row.path[depth] === name);
    const kind = named ? PLACEHOLDERS.get(placeholder) : undefined;
    if (placeholder === "<tier>") this.tiers.add(name);
    if (placeholder === "<provider>" && kind?.accepts(name)) this.providers.add(name);
    const [first] = matching;
    if (!first) this.#refuse(path, tree.line, unknownKey(path, rows));
    else if (kind && !kind.accepts(name)) {
      this.#refuse(path, tree.line, `is not a valid name here; expected ${kind.expects}`);
    } else if (first.path.length === path.length) this.#take(first, path, tree);
    else {
      this.descend(tree, path, matching);
      if (named) this.#complete(path, tree, matching);
    }
  }

  #take(row: Setting, path: readonly string[], tree: Tree): void {
    if (!row.inFile) {
      const ways = [row.flag, row.env].filter((way) => way !== undefined).join(" or ");
      this.#refuse(path, tree.line, `cannot be set in the file; use ${ways}`);
      return;
    }
    const key = path.join(".");
    const read = interpret(row, tree, this.#lookUp);
    for (const variable of read.variables) this.variables.add(variable);
    for (const { suffix, line, message } of read.problems) {
      this.problems.push({ key: plainName(key + suffix), where: `${this.#file}:${line}`, message });
    }
    if (read.value === undefined) return;
    const detail = `${this.#file}:${tree.line}`;
    this.values.push({ key, path, value: read.value, secret: row.secret, origin: "file", detail });
  }

  /** Adds the defaults of a named item (a provider, a price or a tier) and reports missing settings. */
  #complete(path: readonly string[], tree: Tree, rows: readonly Setting[]): void {
    const depth = path.length;
    for (const row of rows) {
      const last = row.path[depth];
      if (row.path.length !== depth + 1 || last === undefined || isPlaceholder(last)) continue;
      if (tree.form === "map" && tree.entries.has(last)) continue;
      const own = [...path, last];
      if (row.required && (tree.form === "map" || (tree.form === "scalar" && tree.value === null))) {
        this.#refuse(own, tree.line, `is missing; expected ${row.expects}`);
      } else if (row.default !== undefined) {
        const value = row.default;
        const { secret } = row;
        this.values.push({
          key: own.join("."),
          path: own,
          value,
          secret,
          origin: "default",
          detail: "built in",
        });
      }
    }
  }

  #refuse(path: readonly string[], line: number, message: string): void {
    this.problems.push({ key: plainName(path.join(".")), where: `${this.#file}:${line}`, message });
  }
}

/** Describes what a mapping contains. */
function contents(depth: number, rows: readonly Setting[]): string {
  const names = new Set(rows.map((row) => row.path[depth] ?? ""));
  const [first = ""] = names;
  const kind = PLACEHOLDERS.get(first);
  return kind ? `a mapping, each key ${kind.expects}` : `a mapping of ${[...names].join(", ")}`;
}

function unknownKey(path: readonly string[], rows: readonly Setting[]): string {
  const name = path.at(-1) ?? "";
  const parent = path.slice(0, -1);
  const dotted = SETTINGS.find((row) => row.inFile && row.key === name);
  if (dotted) {
    const nested = dotted.path
      .slice(0, -1)
      .reduceRight((inner, part) => `${part}: { ${inner} }`, `${dotted.path.at(-1)}: …`);
    return `is not a known setting; dots do not nest, write ${nested}`;
  }
  const siblings = new Set(rows.flatMap((row) => (row.inFile ? (row.path[parent.length] ?? []) : [])));
  const sibling = nearest(name, siblings) ?? "";
  const elsewhere = SETTINGS.find((row) => row.inFile && row.path.at(-1) === name);
  const best = elsewhere && distance(name, sibling) > 2 ? elsewhere.key : [...parent, sibling].join(".");
  return `is not a known setting; the nearest is ${best}`;
}
