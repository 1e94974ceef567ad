import type { VariableLookup } from "./environment.ts";
import { expand } from "./expand.ts";
import { quoted, REDACTED } from "./redact.ts";
import type { Setting } from "./setting.ts";
import type { Tree } from "./tree.ts";

export type SettingValue = string | number | readonly string[];

/**
 * The result of reading a value: the value, or what is wrong with it. `suffix` points into a list: `[0]`. A list
 * keeps its valid entries, with an empty string for each invalid one, so references to them can still be checked.
 */
export interface InterpretResult {
  readonly value: SettingValue | undefined;
  readonly variables: readonly string[];
  readonly problems: readonly { readonly suffix: string; readonly line: number; readonly message: string }[];
}

/** Reads a setting's value from a file: fills in variables, converts and checks. */
export function interpret(
  row: Setting,
  tree: Tree,
  lookUp: (name: string) => VariableLookup | undefined,
): InterpretResult {
  const refuse = (message: string, variables: readonly string[] = []): InterpretResult => ({
    value: undefined,
    variables,
    problems: [{ suffix: "", line: tree.line, message }],
  });
  if (row.form === "list") {
    return tree.form === "list"
      ? interpretList(row, tree.items, tree.line, lookUp)
      : refuse(mismatch(row, tree));
  }
  if (tree.form !== "scalar") return refuse(mismatch(row, tree));
  if (typeof tree.value !== "string") {
    return row.is(tree.value) && isValue(tree.value)
      ? { value: tree.value, variables: [], problems: [] }
      : refuse(mismatch(row, tree));
  }
  const filled = expand(tree.value, lookUp);
  if ("failure" in filled) return refuse(filled.failure, filled.variables);
  // A quoted number is a mistake. The value of a variable is always text.
  const value = filled.variables.length > 0 ? convert(row, filled.text) : filled.text;
  return isValue(value) && row.is(value)
    ? { value, variables: filled.variables, problems: [] }
    : refuse(mismatch(row, tree), filled.variables);
}

/** Reads a setting's value from a flag or variable, or says what is wrong with it. */
export function interpretText(row: Setting, text: string): { value: SettingValue } | { message: string } {
  const value = convert(row, text);
  if (isValue(value) && row.is(value)) return { value };
  return { message: mismatch(row, { form: "scalar", line: 0, value: text }) };
}

function interpretList(
  row: Setting,
  items: readonly Tree[],
  line: number,
  lookUp: (name: string) => VariableLookup | undefined,
): InterpretResult {
  const values: string[] = [];
  const variables: string[] = [];
  const problems: { suffix: string; line: number; message: string }[] = [];
  for (const [index, item] of items.entries()) {
    const read = interpretItem(row, item, lookUp);
    variables.push(...read.variables);
    values.push(read.text);
    if (read.message !== undefined)
      problems.push({ suffix: `[${index}]`, line: item.line, message: read.message });
  }
  if (problems.length === 0 && !row.is(values)) {
    problems.push({ suffix: "", line, message: `has ${items.length} entries; expected ${row.expects}` });
  }
  return { value: values, variables, problems };
}

function interpretItem(row: Setting, item: Tree, lookUp: (name: string) => VariableLookup | undefined) {
  const refused = { text: "", message: mismatch({ ...row, ...row.item }, item) };
  if (item.form !== "scalar" || typeof item.value !== "string") return { ...refused, variables: [] };
  const filled = expand(item.value, lookUp);
  const { variables } = filled;
  if ("failure" in filled) return { text: "", message: filled.failure, variables };
  return row.is([filled.text])
    ? { text: filled.text, message: undefined, variables }
    : { ...refused, variables };
}
/** Converts text to the value that it represents; returns the text itself if there is none. */
function convert(row: Setting, text: string): SettingValue {
  const trimmed = text.trim();
  if (row.form === "number" && /^[+-]?\d+(?:\.\d+)?$/.test(trimmed)) return Number(text);
  if (row.form === "list") return trimmed === "" ? [] : trimmed.split(",").map((item) => item.trim());
  return text;
}

/** Lists are made from text here. A list in the file is read item by item. */
function isValue(value: unknown): value is SettingValue {
  return ["string", "number"].includes(typeof value) || Array.isArray(value);
}

/** Describes what was found and what is expected. Shows the file's text, but never the value of a variable. */
function mismatch(row: Pick<Setting, "form" | "secret" | "expects" | "retired">, tree: Tree): string {
  const expected = `expected ${row.expects}`;
  if (tree.form !== "scalar") return `is ${tree.form === "map" ? "a mapping" : "a list"}; ${expected}`;
  if (tree.value === null || tree.value === "") return `has no value; ${expected}`;
  const advice = row.retired?.get(String(tree.value).toLowerCase());
  if (advice !== undefined) return `is ${String(tree.value)}, which is no longer accepted; ${advice}`;
  const quotes = row.form !== "number" && typeof tree.value !== "string" ? ", in quotes" : "";
  // An invalid URL cannot be separated from its password.
  const hidden = row.secret || (row.form === "url" && /[@?]/.test(String(tree.value)));
  if (hidden) return `is ${REDACTED}; ${expected}${quotes}`;
  return `is ${typeof tree.value === "string" ? quoted(tree.value) : String(tree.value)}; ${expected}${quotes}`;
}
