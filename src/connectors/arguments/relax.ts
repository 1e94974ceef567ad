import type { JsonSchema } from "../../agents/index.ts";
import { isObject, sizeOf, targetOf } from "./json.ts";

/** A copy of a schema to validate with, and its size. */
export interface SafeSchema {
  readonly schema: JsonSchema | boolean;
  /** Whether the copy accepts nothing that the original refuses. */
  readonly isExact: boolean;
  /** Number of schemas in the copy, including the entries of `DATA_OF_NODE`. */
  readonly nodes: number;
}

/**
 * Maximum number of schemas, with references expanded and the entries of `DATA_OF_NODE` included. Copying and
 * compiling that many takes about 30 ms.
 */
const MOST_NODES = 1_000;
/** How many values of `enum` and `const`, and names in `required`, cost as much as one schema. */
const DATA_OF_NODE = 4;
/** Longer references are not followed: following one takes a step for each of its parts. */
const MOST_REFERENCE = 1_000;
/** Maximum nesting of schemas: ten times as many levels overflow the compiler's stack. */
const MOST_LEVELS = 100;

const TYPES: readonly unknown[] = ["string", "number", "integer", "boolean", "object", "array", "null"];
const NUMBERS = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] as const;
const COUNTS = ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"] as const;
/** Keywords that hold one schema or a list of them. They accept more when those schemas do. */
const HOLDERS_OF_ONE = ["items", "additionalItems", "propertyNames"] as const;
const HOLDERS_OF_LISTS = ["items", "allOf", "anyOf", "prefixItems"] as const;
/**
 * `pattern`, `patternProperties` and `format` make a check run expressions that backtrack: some would take years on
 * short text. The others are rare in tools, and each can make a small value expensive to check, or accepts less when
 * the schemas inside it accept more.
 */
const LEFT_OUT = [
  "pattern",
  "patternProperties",
  "$dynamicRef",
  "$recursiveRef",
  "contains",
  "minContains",
  "maxContains",
  "dependencies",
  "dependentRequired",
  "dependentSchemas",
  "unevaluatedItems",
  "unevaluatedProperties",
  "uniqueItems",
] as const;

/**
 * Copies an untrusted schema into one that is safe to validate with: it contains no patterns, formats or references
 * (references are expanded; a recursive one accepts anything), and its size and depth are limited so that it compiles
 * quickly. The copy accepts everything that the original accepts. A keyword that cannot be copied is dropped if that
 * makes the schema accept more; if it would accept less, the keyword around it (`not`, `if`, `oneOf`) is dropped
 * instead.
 * @param formats `checked` if the schema's owner may refuse values by their `format`, which is only an annotation
 *   otherwise
 */
export function relax(schema: JsonSchema, formats: "checked" | "annotations" = "checked"): SafeSchema {
  const copy = new Copy(schema, formats);
  const copied = copy.of(schema, 0, ["#"]);
  return { ...copied, nodes: copy.nodes };
}

type Keywords = Readonly<Record<string, unknown>>;
type SchemaCopy = Record<string, unknown>;

/** A copied schema. If it is not exact, it accepts more than the original, never less. */
interface CopiedSchema {
  readonly schema: JsonSchema | boolean;
  readonly isExact: boolean;
}

/** Copies the schemas inside a schema. */
interface Inner {
  copy(schema: unknown): CopiedSchema;
  /** How many more schemas may be copied. */
  room(): number;
}

const ANYTHING: CopiedSchema = { schema: {}, isExact: false };

class Copy {
  readonly #root: JsonSchema;
  readonly #areFormatsChecked: boolean;
  readonly #targets = new Map<string, unknown>();
  #nodesLeft = MOST_NODES;

  constructor(root: JsonSchema, formats: "checked" | "annotations") {
    this.#root = root;
    this.#areFormatsChecked = formats === "checked";
  }

  get nodes(): number {
    return MOST_NODES - this.#nodesLeft;
  }

  /** @param within the references that are being expanded */
  of(schema: unknown, level: number, within: readonly string[]): CopiedSchema {
    if (level > MOST_LEVELS || !this.#affords(1)) return ANYTHING;
    if (typeof schema === "boolean") return { schema, isExact: true };
    // References below another `$id` point into another document.
    if (!isObject(schema) || (level > 0 && schema.$id !== undefined)) return ANYTHING;
    const inner: Inner = {
      copy: (each) => this.of(each, level + 1, within),
      room: () => (level < MOST_LEVELS ? this.#nodesLeft : 0),
    };
    const draft: SchemaCopy = {};
    const parts = [
      copyPlain(schema, draft),
      schema.format === undefined || !this.#areFormatsChecked,
      this.#copyData(schema, draft),
      copyProperties(schema, draft, inner),
      copyHolders(schema, draft, inner),
      copyNegative(schema, draft, inner),
    ];
    const copied = { schema: draft, isExact: parts.every((isExact) => isExact) };
    return schema.$ref === undefined ? copied : this.#referenced(schema.$ref, copied, level, within);
  }

  #referenced(
    reference: unknown,
    besides: CopiedSchema,
    level: number,
    within: readonly string[],
  ): CopiedSchema {
    if (typeof reference !== "string" || reference.length > MOST_REFERENCE || within.includes(reference)) {
      return { ...besides, isExact: false };
    }
    const target = this.of(this.#targetOf(reference), level + 1, [...within, reference]);
    const isExact = target.isExact && besides.isExact;
    if (Object.keys(besides.schema).length === 0) return { schema: target.schema, isExact };
    return { schema: { allOf: [target.schema, besides.schema] }, isExact };
  }

  /** Each reference is followed once, however often it is expanded. */
  #targetOf(reference: string): unknown {
    if (!this.#targets.has(reference)) this.#targets.set(reference, targetOf(this.#root, reference));
    return this.#targets.get(reference);
  }

  #affords(nodes: number): boolean {
    if (nodes > this.#nodesLeft) return false;
    this.#nodesLeft -= nodes;
    return true;
  }

  #copyData(schema: Keywords, draft: SchemaCopy): boolean {
    const { required } = schema;
    const fits = (data: unknown): boolean =>
      this.#affords(Math.ceil(sizeOf(data, DATA_OF_NODE * this.#nodesLeft) / DATA_OF_NODE));
    const isExact = [
      copyIf(schema, draft, "const", fits),
      copyIf(schema, draft, "enum", (data) => Array.isArray(data) && data.length > 0 && fits(data)),
      copyIf(schema, draft, "required", () => isNames(required) && fits(required)),
    ];
    return isExact.every((each) => each);
  }
}

function copyProperties(schema: Keywords, draft: SchemaCopy, inner: Inner): boolean {
  const { isExact, isWhole } = copyNamed(schema, draft, inner);
  if (schema.additionalProperties === undefined) return isExact;
  // A property whose definition was dropped would count as additional.
  if (!isWhole || schema.patternProperties !== undefined) return false;
  const copied = inner.copy(schema.additionalProperties);
  draft.additionalProperties = copied.schema;
  return isExact && copied.isExact;
}

/** Like every copying function here: @returns whether the draft is exact. */
function copyIf(
  schema: Keywords,
  draft: SchemaCopy,
  key: string,
  isTaken: (value: unknown) => boolean,
): boolean {
  const value = schema[key];
  if (value === undefined) return true;
  if (!isTaken(value)) return false;
  draft[key] = value;
  return true;
}

function copyPlain(schema: Keywords, draft: SchemaCopy): boolean {
  const isExact = [
    LEFT_OUT.every((key) => schema[key] === undefined),
    copyIf(schema, draft, "type", (type) => (Array.isArray(type) ? isTypes(type) : TYPES.includes(type))),
    copyIf(schema, draft, "multipleOf", (value) => Number.isFinite(value) && Number(value) > 0),
    ...NUMBERS.map((key) => copyIf(schema, draft, key, Number.isFinite)),
    ...COUNTS.map((key) =>
      copyIf(schema, draft, key, (value) => Number.isSafeInteger(value) && Number(value) >= 0),
    ),
  ];
  return isExact.every((each) => each);
}

function isTypes(types: readonly unknown[]): boolean {
  return types.length > 0 && types.length <= TYPES.length && types.every((type) => TYPES.includes(type));
}

function isNames(names: unknown): boolean {
  return Array.isArray(names) && names.every((name) => typeof name === "string");
}

function copyNamed(
  schema: Keywords,
  draft: SchemaCopy,
  inner: Inner,
): { isExact: boolean; isWhole: boolean } {
  const map = schema.properties;
  if (map === undefined) return { isExact: true, isWhole: true };
  if (!isObject(map)) return { isExact: false, isWhole: false };
  const names = Object.keys(map);
  // Compiled code cannot look up the name `__proto__`.
  const taken = names.slice(0, inner.room()).filter((name) => name !== "__proto__");
  const copied = taken.map((name) => [name, inner.copy(map[name])] as const);
  draft.properties = Object.fromEntries(copied.map(([name, each]) => [name, each.schema]));
  const isWhole = taken.length === names.length;
  return { isExact: isWhole && copied.every(([, each]) => each.isExact), isWhole };
}

function copyHolders(schema: Keywords, draft: SchemaCopy, inner: Inner): boolean {
  let isAllExact = true;
  for (const key of HOLDERS_OF_ONE) {
    const held = schema[key];
    if (held === undefined || Array.isArray(held)) continue;
    const { schema: copy, isExact } = inner.copy(held);
    draft[key] = copy;
    isAllExact &&= isExact;
  }
  for (const key of HOLDERS_OF_LISTS) {
    const held = schema[key];
    if (!Array.isArray(held) || held.length === 0 || held.length > inner.room()) continue;
    const { copies, isExact } = copyList(held, inner);
    draft[key] = copies;
    isAllExact &&= isExact;
  }
  return (
    isAllExact &&
    [...HOLDERS_OF_ONE, ...HOLDERS_OF_LISTS].every((key) => key in draft === (schema[key] !== undefined))
  );
}

function copyList(schemas: readonly unknown[], inner: Inner): { copies: unknown[]; isExact: boolean } {
  const copied = schemas.map((schema) => inner.copy(schema));
  return { copies: copied.map((each) => each.schema), isExact: copied.every((each) => each.isExact) };
}

/** Copies the keywords that accept less when the schemas inside them accept more. */
function copyNegative(schema: Keywords, draft: SchemaCopy, inner: Inner): boolean {
  let isAllExact = true;
  if (schema.not !== undefined) {
    const not = inner.copy(schema.not);
    if (not.isExact) draft.not = not.schema;
    else isAllExact = false;
  }
  if (schema.oneOf !== undefined) {
    const given: readonly unknown[] = Array.isArray(schema.oneOf) ? schema.oneOf : [];
    const { copies, isExact } = copyList(given.length <= inner.room() ? given : [], inner);
    // If a copy accepts more, two of them may accept the same value. At least one still accepts it.
    if (isExact && copies.length > 0) draft.oneOf = copies;
    else if (copies.length > 0)
      draft.allOf = [...(Array.isArray(draft.allOf) ? draft.allOf : []), { anyOf: copies }];
    isAllExact &&= isExact && copies.length > 0;
  }
  if (schema.if === undefined) return isAllExact;
  const condition = inner.copy(schema.if);
  if (!condition.isExact) return false;
  draft.if = condition.schema;
  for (const key of ["then", "else"] as const) {
    if (schema[key] === undefined) continue;
    const branch = inner.copy(schema[key]);
    draft[key] = branch.schema;
    isAllExact &&= branch.isExact;
  }
  return isAllExact;
}
