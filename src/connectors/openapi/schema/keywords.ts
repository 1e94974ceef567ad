import type { Mask } from "../../../base/masking/mask.ts";
import { firstOf } from "../first-of.ts";
import { type JsonMap, own } from "../json.ts";
import { isBinary } from "./binary.ts";

const TYPES: ReadonlySet<unknown> = new Set([
  "string",
  "number",
  "integer",
  "boolean",
  "object",
  "array",
  "null",
]);
const TEXTS = ["title", "description", "format", "contentEncoding", "contentMediaType"] as const;
const FLAGS = ["uniqueItems", "deprecated"] as const;
const NUMBERS = ["maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum"] as const;
const COUNTS = [
  "maxLength",
  "minLength",
  "maxItems",
  "minItems",
  "maxProperties",
  "minProperties",
  "minContains",
  "maxContains",
] as const;

const TEXT_LIMIT = 4_000;
/** Maximum number of characters of a pattern that a description repeats. */
const PATTERN_LIMIT = 200;

/** A schema under construction: own fields in their order. */
export type SchemaDraft = Record<string, unknown>;

/**
 * Converts the keywords of a Schema Object that contain no schemas to JSON Schema 2020-12: the variants of OpenAPI
 * 3.0 are translated; anything malformed or outside JSON Schema (`xml`, `discriminator`, `x-…`) is dropped.
 *
 * A pattern becomes part of the description: the upstream checks it, and an untrusted regular expression could block
 * the process for hours.
 * @param mask masks the connector's secrets
 */
export function plainKeywords(schema: JsonMap, mask: Mask): SchemaDraft {
  const draft: SchemaDraft = {};
  const type = typeOf(schema);
  if (type !== undefined) draft.type = type;
  for (const key of TEXTS) {
    const value = own(schema, key);
    if (typeof value === "string") draft[key] = firstOf(value, TEXT_LIMIT, mask);
  }
  for (const key of FLAGS) if (own(schema, key) === true) draft[key] = true;
  for (const key of NUMBERS) {
    const value = own(schema, key);
    if (Number.isFinite(value)) draft[key] = value;
  }
  for (const key of COUNTS) {
    const value = own(schema, key);
    if (Number.isSafeInteger(value) && Number(value) >= 0) draft[key] = value;
  }
  const multipleOf = own(schema, "multipleOf");
  if (Number.isFinite(multipleOf) && Number(multipleOf) > 0) draft.multipleOf = multipleOf;
  moveBound(schema, draft, "minimum", "exclusiveMinimum");
  moveBound(schema, draft, "maximum", "exclusiveMaximum");
  const pattern = own(schema, "pattern");
  if (typeof pattern === "string") describe(draft, `Pattern: ${firstOf(pattern, PATTERN_LIMIT, mask)}`);
  if (isBinary(schema)) asBase64(draft);
  return draft;
}

/** The data in a schema. Count its size before using it. */
export function dataKeywords(schema: JsonMap): SchemaDraft {
  const draft: SchemaDraft = {};
  const values = own(schema, "enum");
  if (Array.isArray(values) && values.length > 0) draft.enum = values;
  if (Object.hasOwn(schema, "const")) draft.const = schema.const;
  if (Object.hasOwn(schema, "default")) draft.default = schema.default;
  const examples = own(schema, "examples");
  if (Array.isArray(examples)) draft.examples = examples;
  else if (Object.hasOwn(schema, "example")) draft.examples = [schema.example];
  return draft;
}

/** 3.0 expresses with `nullable` what 3.1 expresses with the type `null`. */
export function allowNull(draft: SchemaDraft): SchemaDraft {
  if (Array.isArray(draft.enum) && !draft.enum.includes(null)) draft.enum = [...draft.enum, null];
  if (draft.type !== undefined) {
    const types = Array.isArray(draft.type) ? draft.type : [draft.type];
    draft.type = types.includes("null") ? types : [...types, "null"];
    return draft;
  }
  const isOpen = ["$ref", "allOf", "anyOf", "oneOf"].every((key) => draft[key] === undefined);
  if (isOpen) return draft;
  const { description, title, ...rest } = draft;
  return {
    ...(title === undefined ? {} : { title }),
    ...(description === undefined ? {} : { description }),
    anyOf: [rest, { type: "null" }],
  };
}

function typeOf(schema: JsonMap): string | string[] | undefined {
  const type = own(schema, "type");
  if (typeof type === "string") return TYPES.has(type) ? type : undefined;
  if (!Array.isArray(type) || type.length > TYPES.size) return undefined;
  const known = [...new Set(type)].filter((each): each is string => TYPES.has(each));
  return known.length === 0 ? undefined : known;
}

/** 3.0: `exclusiveMinimum: true` makes `minimum` an exclusive bound. */
function moveBound(schema: JsonMap, draft: SchemaDraft, bound: string, exclusive: string): void {
  if (own(schema, exclusive) !== true || draft[bound] === undefined) return;
  draft[exclusive] = draft[bound];
  delete draft[bound];
}

function asBase64(draft: SchemaDraft): void {
  draft.type = Array.isArray(draft.type) && draft.type.includes("null") ? ["string", "null"] : "string";
  draft.contentEncoding = "base64";
  delete draft.format;
  // In the document they count bytes; here they would count the characters of the base64 text.
  delete draft.minLength;
  delete draft.maxLength;
  describe(draft, "Bytes, encoded as base64.");
}

function describe(draft: SchemaDraft, sentence: string): void {
  draft.description = typeof draft.description === "string" ? `${draft.description}\n${sentence}` : sentence;
}
