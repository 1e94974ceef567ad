import type { JsonSchema } from "../../agents/index.ts";
import { isObject, sizeOf, targetOf } from "./json.ts";
import type { Steps } from "./pattern/paths.ts";
import { triesOf } from "./pattern/tries.ts";

/** A copy to validate by, and what its patterns cost. */
export interface SafeSchema {
  readonly schema: JsonSchema | boolean;
  /** By pattern: tries for each character of a text. */
  readonly tries: ReadonlyMap<string, number>;
}

/** Schemas, with references written out, and what `DATA_OF_NODE` counts. Copying and compiling so many takes some 30 ms. */
const MOST_NODES = 1_000;
/** Values of `enum` and `const`, and names in `required`, that cost as much as a schema. */
const DATA_OF_NODE = 4;
/** Schemas within schemas: ten times as many overflow the compiler's stack. */
const MOST_LEVELS = 100;
/** What may be spent on judging the patterns of one schema: some 15 ms; a pattern that people write takes some hundred. */
const PATTERN_STEPS = 25_000;
const MOST_FORMAT_CHARACTERS = 50;

const TYPES: readonly unknown[] = ["string", "number", "integer", "boolean", "object", "array", "null"];
const NUMBERS = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] as const;
const COUNTS = ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"] as const;
/** They hold one schema, or a list of them, and take more where that takes more. */
const HOLDERS_OF_ONE = ["items", "additionalItems", "propertyNames"] as const;
const HOLDERS_OF_LISTS = ["items", "allOf", "anyOf", "prefixItems"] as const;
/**
 * Rare in tools, and each has a way of its own to make a small value cost much, or to take less where what it holds takes
 * more.
 */
const LEFT_OUT = [
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
 * A copy of a foreign schema that arguments can be validated by without harm: it has no patterns but those that are shown to
 * be harmless, no references (they are written out; where one leads back into itself, anything is taken), and is no larger
 * and no deeper than what compiles at once. It takes whatever the original takes: what cannot be copied is left out where
 * that takes more, and together with what holds it where it would take less (`not`, `if`, `oneOf`).
 *
 * @param readsTexts false: without patterns and formats, whose cost grows with each character of the arguments
 */
export function relax(schema: JsonSchema, readsTexts: boolean): SafeSchema {
  const copy = new Copy(schema, readsTexts);
  return { schema: copy.of(schema, 0, ["#"]).schema, tries: copy.tries };
}

type Given = Readonly<Record<string, unknown>>;
type Draft = Record<string, unknown>;

/** A copied schema, and whether it says all that the original says; else it takes more, and never less. */
interface Copied {
  readonly schema: JsonSchema | boolean;
  readonly isExact: boolean;
}

/** Copies what a schema holds. */
interface Inner {
  copy(schema: unknown): Copied;
  /** How many schemas there is room for. */
  room(): number;
}

const ANYTHING: Copied = { schema: {}, isExact: false };

class Copy {
  readonly tries = new Map<string, number>();
  readonly #root: JsonSchema;
  readonly #readsTexts: boolean;
  readonly #steps: Steps = { left: PATTERN_STEPS };
  #nodesLeft = MOST_NODES;

  constructor(root: JsonSchema, readsTexts: boolean) {
    this.#root = root;
    this.#readsTexts = readsTexts;
  }

  /** @param within references that are being written out */
  of(schema: unknown, level: number, within: readonly string[]): Copied {
    if (level > MOST_LEVELS || !this.#affords(1)) return ANYTHING;
    if (typeof schema === "boolean") return { schema, isExact: true };
    // References below another `$id` are to parts of another document.
    if (!isObject(schema) || (level > 0 && schema.$id !== undefined)) return ANYTHING;
    const inner: Inner = {
      copy: (each) => this.of(each, level + 1, within),
      room: () => (level < MOST_LEVELS ? this.#nodesLeft : 0),
    };
    const draft: Draft = {};
    const parts = [
      copyPlain(schema, draft),
      this.#copyData(schema, draft),
      this.#copyTexts(schema, draft),
      this.#copyProperties(schema, draft, inner),
      copyHolders(schema, draft, inner),
      copyNegative(schema, draft, inner),
    ];
    const copied = { schema: draft, isExact: parts.every((isExact) => isExact) };
    return schema.$ref === undefined ? copied : this.#referenced(schema.$ref, copied, level, within);
  }

  #referenced(reference: unknown, besides: Copied, level: number, within: readonly string[]): Copied {
    if (typeof reference !== "string" || within.includes(reference)) return { ...besides, isExact: false };
    const target = this.of(targetOf(this.#root, reference), level + 1, [...within, reference]);
    const isExact = target.isExact && besides.isExact;
    if (Object.keys(besides.schema).length === 0) return { schema: target.schema, isExact };
    return { schema: { allOf: [target.schema, besides.schema] }, isExact };
  }

  #affords(nodes: number): boolean {
    if (nodes > this.#nodesLeft) return false;
    this.#nodesLeft -= nodes;
    return true;
  }

  #copyData(schema: Given, draft: Draft): boolean {
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

  #copyTexts(schema: Given, draft: Draft): boolean {
    const isShort = (format: unknown): boolean =>
      this.#readsTexts && typeof format === "string" && format.length <= MOST_FORMAT_CHARACTERS;
    const hasFormat = copyIf(schema, draft, "format", isShort);
    return copyIf(schema, draft, "pattern", (pattern) => this.#isHarmless(pattern)) && hasFormat;
  }

  #isHarmless(pattern: unknown): boolean {
    if (!this.#readsTexts || typeof pattern !== "string") return false;
    if (this.tries.has(pattern)) return true;
    const tries = triesOf(pattern, this.#steps);
    if (tries !== undefined) this.tries.set(pattern, tries);
    return tries !== undefined;
  }

  #copyProperties(schema: Given, draft: Draft, inner: Inner): boolean {
    const properties = copyMap(schema, draft, "properties", inner, () => true);
    const patterns = copyMap(schema, draft, "patternProperties", inner, (name) => this.#isHarmless(name));
    const isExact = properties.isExact && patterns.isExact;
    if (schema.additionalProperties === undefined) return isExact;
    // Where one of the others is missing, what it is for would be additional.
    if (!properties.isWhole || !patterns.isWhole) return false;
    const copied = inner.copy(schema.additionalProperties);
    draft.additionalProperties = copied.schema;
    return isExact && copied.isExact;
  }
}

/** Like all that copy: @returns whether the draft says all that the schema says. */
function copyIf(schema: Given, draft: Draft, key: string, isTaken: (value: unknown) => boolean): boolean {
  const value = schema[key];
  if (value === undefined) return true;
  if (!isTaken(value)) return false;
  draft[key] = value;
  return true;
}

function copyPlain(schema: Given, draft: Draft): boolean {
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

function copyMap(
  schema: Given,
  draft: Draft,
  key: string,
  inner: Inner,
  isTaken: (name: string) => boolean,
): { isExact: boolean; isWhole: boolean } {
  const map = schema[key];
  if (map === undefined) return { isExact: true, isWhole: true };
  if (!isObject(map)) return { isExact: false, isWhole: false };
  const names = Object.keys(map);
  // `__proto__` is a name that compiled code cannot look for.
  const taken = names.slice(0, inner.room()).filter((name) => name !== "__proto__" && isTaken(name));
  const copied = taken.map((name) => [name, inner.copy(map[name])] as const);
  draft[key] = Object.fromEntries(copied.map(([name, each]) => [name, each.schema]));
  const isWhole = taken.length === names.length;
  return { isExact: isWhole && copied.every(([, each]) => each.isExact), isWhole };
}

function copyHolders(schema: Given, draft: Draft, inner: Inner): boolean {
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

/** What takes less where the schemas that it holds take more. */
function copyNegative(schema: Given, draft: Draft, inner: Inner): boolean {
  let isAllExact = true;
  if (schema.not !== undefined) {
    const not = inner.copy(schema.not);
    if (not.isExact) draft.not = not.schema;
    else isAllExact = false;
  }
  if (schema.oneOf !== undefined) {
    const given: readonly unknown[] = Array.isArray(schema.oneOf) ? schema.oneOf : [];
    const { copies, isExact } = copyList(given.length <= inner.room() ? given : [], inner);
    // Two may take a value where one of them takes more: that at least one takes it still holds.
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
