/**
 * Reads a tool's arguments from its JSON Schema. Schemas come from upstreams and may be anything, so nothing here
 * throws.
 */

export interface ArgumentRow {
  /** Path of the argument: `filter.tags[]`. */
  readonly path: string;
  readonly type: string;
  readonly isRequired: boolean;
  readonly description: string;
  /** Further constraints: allowed values, bounds, default. */
  readonly limits: readonly string[];
}

export type FieldKind = "string" | "text" | "number" | "integer" | "boolean" | "choice" | "json";

/** An argument as a form field. */
export interface ArgumentField {
  readonly name: string;
  readonly kind: FieldKind;
  readonly type: string;
  readonly isRequired: boolean;
  readonly description: string;
  readonly limits: readonly string[];
  /** For a choice: pairs of JSON value and label. */
  readonly choices: readonly (readonly [string, string])[];
}

export type FormSchema = Readonly<Record<string, unknown>>;

const DEEPEST = 4;
const MOST_ROWS = 300;
const MOST_CHOICES = 200;
const LONGEST_LINE = 200;

/** All arguments, each followed by its nested arguments. */
export function argumentRows(schema: FormSchema): readonly ArgumentRow[] {
  const rows: ArgumentRow[] = [];
  addRows(rows, resolve(schema, schema), schema, "", 0);
  return rows;
}

function addRows(rows: ArgumentRow[], at: FormSchema, root: FormSchema, prefix: string, depth: number): void {
  if (depth >= DEEPEST) return;
  for (const [name, given] of properties(at)) {
    if (rows.length >= MOST_ROWS) return;
    const schema = resolve(given, root);
    const path = prefix === "" ? name : `${prefix}.${name}`;
    rows.push({
      path,
      type: typeOf(schema, root),
      isRequired: requiredOf(at).has(name),
      description: descriptionOf(given, schema),
      limits: limitsOf(schema),
    });
    const items = resolve(schema.items, root);
    if (properties(schema).length > 0) addRows(rows, schema, root, path, depth + 1);
    else if (properties(items).length > 0) addRows(rows, items, root, `${path}[]`, depth + 1);
  }
}

/** The form fields of a schema; null if it names no arguments but allows some. */
export function argumentFields(schema: FormSchema): readonly ArgumentField[] | null {
  const root = resolve(schema, schema);
  const named = properties(root);
  if (named.length === 0) return root.additionalProperties === false ? [] : null;
  const required = requiredOf(root);
  return named.slice(0, MOST_ROWS).map(([name, given]) => {
    const one = resolve(given, schema);
    const choices = choicesOf(one);
    return {
      name,
      kind: choices.length > 0 ? "choice" : kindOf(one),
      type: typeOf(one, schema),
      isRequired: required.has(name),
      description: descriptionOf(given, one),
      limits: choices.length > 0 ? limitsOf({ ...one, enum: undefined }) : limitsOf(one),
      choices,
    };
  });
}

/** The typed arguments, and errors by name. Empty fields are left out. */
export function readArguments(
  fields: readonly ArgumentField[],
  typed: ReadonlyMap<string, string>,
): { readonly input: Record<string, unknown>; readonly errors: ReadonlyMap<string, string> } {
  const errors = new Map<string, string>();
  const entries: [string, unknown][] = [];
  for (const { name, kind, isRequired } of fields) {
    const text = typed.get(name) ?? "";
    if (text === "") {
      if (isRequired) errors.set(name, "is required");
      continue;
    }
    if (kind === "string" || kind === "text") {
      entries.push([name, text]);
    } else if (kind === "number" || kind === "integer") {
      if (Number.isFinite(Number(text))) entries.push([name, Number(text)]);
      else errors.set(name, "is not a number");
    } else {
      // Choices and booleans are JSON too.
      const parsed = parseJson(text);
      if ("message" in parsed) errors.set(name, `is not JSON: ${parsed.message}`);
      else entries.push([name, parsed.value]);
    }
  }
  return { input: Object.fromEntries(entries), errors };
}

/** Parses arguments typed as JSON. */
export function readObject(
  text: string,
): { readonly input: Record<string, unknown> } | { readonly message: string } {
  if (text.trim() === "") return { input: {} };
  const parsed = parseJson(text);
  if ("message" in parsed) return { message: `is not JSON: ${parsed.message}` };
  const fields = asSchema(parsed.value);
  return fields ? { input: Object.fromEntries(Object.entries(fields)) } : { message: "is not a JSON object" };
}

/** Converts arguments to form values, if the form has fields for them. */
export function typedFrom(
  fields: readonly ArgumentField[],
  input: Readonly<Record<string, unknown>>,
): ReadonlyMap<string, string> {
  const given = new Map(Object.entries(input));
  return new Map(
    fields.flatMap(({ name, kind }) => {
      const value = given.get(name);
      if (value === undefined) return [];
      const isText = (kind === "string" || kind === "text") && typeof value === "string";
      return [[name, isText ? value : JSON.stringify(value, null, kind === "json" ? 2 : 0)]];
    }),
  );
}

function parseJson(text: string): { readonly value: unknown } | { readonly message: string } {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch (error) {
    return { message: error instanceof Error ? error.message : String(error) };
  }
}

function asSchema(value: unknown): FormSchema | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as FormSchema)
    : undefined;
}

function own(schema: FormSchema, key: string): unknown {
  return Object.hasOwn(schema, key) ? schema[key] : undefined;
}

function properties(schema: FormSchema): [string, unknown][] {
  return Object.entries(asSchema(own(schema, "properties")) ?? {});
}

function requiredOf(schema: FormSchema): ReadonlySet<unknown> {
  const required = own(schema, "required");
  return new Set(Array.isArray(required) ? required : []);
}

/** Resolves references within the document, and unwraps "this or null". Always returns an object. */
function resolve(given: unknown, root: FormSchema): FormSchema {
  let at = asSchema(given) ?? {};
  for (let steps = 0; steps < 8; steps += 1) {
    const reference = own(at, "$ref");
    if (typeof reference === "string" && reference.startsWith("#/")) {
      at = asSchema(follow(reference, root)) ?? {};
      continue;
    }
    const either = own(at, "anyOf") ?? own(at, "oneOf");
    const [only, ...more] = Array.isArray(either)
      ? either.filter((one) => asSchema(one)?.type !== "null")
      : [];
    if (only === undefined || more.length > 0) return at;
    at = asSchema(only) ?? {};
  }
  return at;
}

function follow(reference: string, root: FormSchema): unknown {
  let at: unknown = root;
  for (const part of reference.slice(2).split("/")) {
    const fields = asSchema(at);
    if (!fields) return undefined;
    at = own(fields, part.replaceAll("~1", "/").replaceAll("~0", "~"));
  }
  return at;
}

/** Type names without `null`. */
function typesOf(schema: FormSchema): string[] {
  const type = own(schema, "type");
  const types = Array.isArray(type) ? type : [type];
  return types.filter((one): one is string => typeof one === "string" && one !== "null");
}

function kindOf(schema: FormSchema): FieldKind {
  const [type, ...more] = typesOf(schema);
  if (more.length > 0) return "json";
  switch (type) {
    case "string": {
      const longest = own(schema, "maxLength");
      const isLine =
        ["format", "pattern"].some((key) => own(schema, key) !== undefined) ||
        (typeof longest === "number" && longest <= LONGEST_LINE);
      return isLine ? "string" : "text";
    }
    case "number":
    case "integer":
    case "boolean":
      return type;
    default:
      return "json";
  }
}

function typeOf(schema: FormSchema, root: FormSchema): string {
  const types = typesOf(schema);
  if (types.length === 0) {
    const values = own(schema, "enum");
    if (Array.isArray(values) && values.length > 0) return [...new Set(values.map(typeName))].join(" or ");
    return own(schema, "anyOf") !== undefined || own(schema, "oneOf") !== undefined
      ? "one of several"
      : "any";
  }
  return types
    .map((type) => {
      const [item] = type === "array" ? typesOf(resolve(own(schema, "items"), root)) : [];
      return item === undefined ? type : `list of ${item}`;
    })
    .join(" or ")
    .slice(0, 200);
}

function descriptionOf(given: unknown, resolved: FormSchema): string {
  const nearest = asSchema(given)?.description;
  const description = typeof nearest === "string" ? nearest : resolved.description;
  return typeof description === "string" ? description : "";
}

function choicesOf(schema: FormSchema): (readonly [string, string])[] {
  const values = own(schema, "enum");
  if (!Array.isArray(values) || values.length > MOST_CHOICES) return [];
  return values.map((value) => {
    const json = JSON.stringify(value);
    return [json, typeof value === "string" ? value : json];
  });
}

/** Descriptions of bounds; `#` is replaced by the bound. */
const BOUNDS: readonly (readonly [string, string])[] = [
  ["minimum", "# at least"],
  ["exclusiveMinimum", "over #"],
  ["maximum", "# at most"],
  ["exclusiveMaximum", "under #"],
  ["minLength", "# characters at least"],
  ["maxLength", "# characters at most"],
  ["minItems", "# items at least"],
  ["maxItems", "# items at most"],
  ["pattern", "matches #"],
  ["format", "format #"],
];

function limitsOf(schema: FormSchema): string[] {
  const limits: string[] = [];
  const values = own(schema, "enum");
  if (Array.isArray(values))
    limits.push(`one of ${values.slice(0, 50).map(shortJson).join(", ").slice(0, 1_000)}`);
  if (own(schema, "const") !== undefined) limits.push(`always ${shortJson(schema.const)}`);
  for (const [key, words] of BOUNDS) {
    const bound = own(schema, key);
    if (typeof bound !== "number" && typeof bound !== "string") continue;
    limits.push(words.replace("#", () => String(bound).slice(0, 200)));
  }
  if (own(schema, "default") !== undefined) limits.push(`default ${shortJson(schema.default)}`);
  return limits;
}

function typeName(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function shortJson(value: unknown): string {
  const json = JSON.stringify(value) ?? "";
  return json.length > 300 ? `${json.slice(0, 300)}…` : json;
}
