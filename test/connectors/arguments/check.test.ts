import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { JsonObject, JsonSchema } from "../../../src/agents/index.ts";
import { validator } from "../../../src/base/schema.ts";
import { argumentCheck } from "../../../src/connectors/arguments/check.ts";
import { relax } from "../../../src/connectors/arguments/relax.ts";

const many = <Value>(length: number, make: (index: number) => Value): Value[] =>
  Array.from({ length }, (_, index) => make(index));
const properties = (length: number, make: (index: number) => unknown) =>
  Object.fromEntries(many(length, (index) => [`p${index}`, make(index)]));
function nested(levels: number, wrap: (inner: unknown) => unknown): unknown {
  let schema: unknown = { type: "string" };
  for (let level = 0; level < levels; level += 1) schema = wrap(schema);
  return schema;
}
function deep(levels: number): JsonObject {
  let value: JsonObject = {};
  for (let level = 0; level < levels; level += 1) value = { a: value };
  return value;
}
const pathsOf = (schema: JsonSchema, input: JsonObject) =>
  argumentCheck(() => schema)(input).map(({ path }) => path);
/** The number of schemas and values in a copy. */
function sizeOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 1;
  return Object.values(value).reduce<number>((sum, each) => sum + sizeOf(each), 1);
}

describe("arguments are refused according to the schema", () => {
  test.each<[string, JsonSchema, JsonObject, string[]]>([
    ["for a type", { properties: { a: { type: "integer" } } }, { a: "1" }, ["/a"]],
    ["if one is missing", { required: ["a"] }, {}, ["/a"]],
    ["if one is unknown", { properties: { a: {} }, additionalProperties: false }, { b: 1 }, ["/b"]],
    ["for a property's name", { propertyNames: { maxLength: 1 } }, { aa: 1 }, ["/aa", ""]],
    ["for an enum", { properties: { a: { enum: ["x", "y"] } } }, { a: "z" }, ["/a"]],
    [
      "for a reference",
      { $defs: { "a/b": { type: "null" } }, properties: { a: { $ref: "#/$defs/a~1b" } } },
      { a: 1 },
      ["/a"],
    ],
    [
      "for a reference and the parts next to it",
      { $defs: { t: { type: "string" } }, properties: { a: { $ref: "#/$defs/t", minLength: 2 } } },
      { a: "x" },
      ["/a"],
    ],
    [
      "for a reference to itself, once",
      { properties: { n: { type: "integer" }, next: { $ref: "#" } } },
      { n: "1", next: {} },
      ["/n"],
    ],
    ["for `not`, `if` and `oneOf`", { not: { required: ["x"] } }, { x: 1 }, [""]],
    [
      "for a tuple",
      { properties: { a: { prefixItems: [{ type: "string" }], items: { type: "null" } } } },
      { a: [1, 2] },
      ["/a/0", "/a/1"],
    ],
  ])("%s", (_, schema, input, paths) => {
    expect(pathsOf(schema, input).sort()).toEqual(paths.sort());
  });
});

describe("ignored parts of a schema refuse nothing", () => {
  const harmful = { pattern: "^(a+)+$" };
  test.each<[string, JsonSchema, JsonObject]>([
    ["a harmless pattern", { properties: { a: { pattern: "^[a-z]+$" } } }, { a: "A" }],
    ["a format", { properties: { a: { format: "date" } } }, { a: "today" }],
    ["properties by a pattern", { patternProperties: { "^x": { type: "string" } } }, { x1: 1 }],
    ["a harmful pattern", { properties: { a: harmful } }, { a: `${"a".repeat(50)}!` }],
    ["one of a property's names", { propertyNames: harmful }, { [`${"a".repeat(50)}!`]: 1 }],
    [
      "one for properties",
      { patternProperties: { "^(a+)+$": { type: "null" } } },
      { [`${"a".repeat(50)}!`]: 1 },
    ],
    [
      "one for properties, where no others are allowed",
      { patternProperties: { "^(x+)+$": {} }, additionalProperties: false },
      { xx: 1 },
    ],
    ["one within not", { properties: { a: { not: harmful } } }, { a: "b" }],
    ["one within one of several", { properties: { a: { oneOf: [harmful, { maxLength: 3 }] } } }, { a: "bb" }],
    // biome-ignore lint/suspicious/noThenProperty: it is a keyword of JSON Schema
    ["one within a condition", { if: { properties: { a: harmful } }, then: false }, { a: "b" }],
    [
      "one after a reference within not",
      { $defs: { h: harmful }, properties: { a: { not: { $ref: "#/$defs/h" } } } },
      { a: "b" },
    ],
    ["a reference to nowhere", { properties: { a: { $ref: "#/nowhere" } } }, { a: 1 }],
    ["a reference elsewhere", { properties: { a: { $ref: "https://example.com/schema.json" } } }, { a: 1 }],
    ["a reference that cannot be decoded", { properties: { a: { $ref: "#/%" } } }, { a: 1 }],
    ["a reference to itself", { properties: { a: { $ref: "#/properties/a" } } }, { a: 1 }],
    [
      "references to each other",
      {
        $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } },
        properties: { a: { not: { $ref: "#/$defs/a" } } },
      },
      { a: 1 },
    ],
    ["a part of another document", { properties: { a: { $id: "other", type: "string" } } }, { a: 1 }],
    [
      "an invalid schema",
      { properties: { a: 7, b: null, c: [] }, required: "a", enum: 1, type: "text", anyOf: {}, items: 3 },
      { a: 1, b: 2, c: 3 },
    ],
    [
      "marks of typebox",
      { properties: { a: { "~guard": {}, "~refine": [{}], "~kind": "Codec" } } },
      { a: 1 },
    ],
    [
      "a property with an invalid name",
      JSON.parse('{"properties":{"__proto__":{"type":"string"}},"additionalProperties":false}'),
      { b: 1 },
    ],
  ])("%s", (_, schema, input) => {
    expect(argumentCheck(() => schema)(input)).toEqual([]);
  });

  test("and the parts next to them still refuse", () => {
    const schema = { required: ["b"], properties: { a: { ...harmful, type: "string" } }, not: harmful };
    expect(pathsOf(schema, { a: 1 }).sort()).toEqual(["/a", "/b"]);
  });
});

describe("a hostile schema is reduced to what compiles quickly, and never throws:", () => {
  const hostile: [string, JsonSchema, JsonObject][] = [
    ["anyOf, deep", { properties: { a: nested(5_000, (inner) => ({ anyOf: [inner] })) } }, { a: 1 }],
    ["oneOf, deep", { properties: { a: nested(5_000, (inner) => ({ oneOf: [inner, false] })) } }, { a: 1 }],
    ["not, deep", { properties: { a: nested(5_000, (inner) => ({ not: inner })) } }, { a: 1 }],
    ["items, deep", { properties: { a: nested(5_000, (items) => ({ items })) } }, { a: [1] }],
    ["anyOf, wide", { properties: { a: { anyOf: many(6_000, () => ({ type: "null" })) } } }, { a: 1 }],
    ["a huge enum", { properties: { a: { enum: many(12_000, (index) => index) } } }, { a: "z" }],
    ["a deep constant", { properties: { a: { const: deep(20_000) } } }, { a: deep(20_000) }],
    [
      "many properties",
      { properties: properties(5_000, () => ({ type: "string" })), additionalProperties: false },
      { p1: 1 },
    ],
    [
      "many required properties",
      { required: many(9_000, String), properties: properties(900, () => ({})) },
      { p1: 1 },
    ],
    [
      "many patterns",
      { properties: properties(1_000, (index) => ({ pattern: `^[a-z]{1,${index}}$` })) },
      { p1: 1 },
    ],
    [
      "references that double",
      {
        $defs: properties(40, (index) => ({ anyOf: many(2, () => ({ $ref: `#/$defs/p${index + 1}` })) })),
        properties: { a: { $ref: "#/$defs/p0" } },
      },
      { a: 1 },
    ],
    [
      "references that double with each level of the arguments",
      {
        $defs: { n: { properties: { a: { allOf: many(2, () => ({ $ref: "#/$defs/n" })) } } } },
        properties: { a: { $ref: "#/$defs/n" } },
      },
      deep(40),
    ],
  ];
  test.each(hostile)("%s", (_, schema, input) => {
    expect(sizeOf(relax(schema).schema)).toBeLessThan(15_000);
    const check = argumentCheck(() => schema);
    expect(Array.isArray(check(input))).toBe(true);
    expect(check({})).toEqual(check({}));
  });
});

describe("references", () => {
  test("are followed once, however often they are expanded", () => {
    let followed = 0;
    const definitions = new Proxy<Record<string, unknown>>(
      { B: { type: "number" } },
      {
        getOwnPropertyDescriptor(target, name) {
          followed += 1;
          return Reflect.getOwnPropertyDescriptor(target, name);
        },
      },
    );
    const anyOf = Array.from({ length: 200 }, () => ({ $ref: "#/$defs/B" }));
    const { isExact } = relax({ $defs: definitions, anyOf });
    expect([isExact, followed]).toEqual([true, 1]);
  });

  test("of more than 1,000 characters are not followed", () => {
    const name = "a".repeat(1_000 - "#/$defs/".length);
    const schemaOf = (name: string) => ({ $defs: { [name]: { type: "number" } }, $ref: `#/$defs/${name}` });
    expect(relax(schemaOf(name)).isExact).toBe(true);
    expect(relax(schemaOf(`${name}a`)).isExact).toBe(false);
  });
});

describe("arguments that would take too long to check are left to the upstream:", () => {
  const texts = many(9_000, () => "x");
  const besides = { b: { type: "number" } };
  test.each<[string, unknown, JsonObject[string]]>([
    [
      "each of many values against many schemas",
      { items: { anyOf: [...many(300, () => ({ minimum: 2 })), {}] } },
      texts,
    ],
    ["a long text against a long enum", { enum: many(3_000, String) }, "a".repeat(10_000_000)],
    [
      "many objects against many names",
      { items: { properties: properties(900, () => ({})), additionalProperties: false } },
      many(4_000, () => ({ z: 1 })),
    ],
  ])("%s", (_, a, value) => {
    const check = argumentCheck(() => ({ properties: { a, ...besides } }));
    expect(check({ b: "x" })).toHaveLength(1);
    const refused = check({ a: value, b: "x" }).map(({ path }) => path);
    expect(refused).toEqual([]);
  });

  test("a long text costs no more than a short one", () => {
    const check = argumentCheck(() => ({ properties: { a: { format: "uri", pattern: "^h" }, ...besides } }));
    expect(check({ a: "x".repeat(100_000), b: "x" }).map(({ path }) => path)).toEqual(["/b"]);
  });

  test("more values than can be checked are refused, as everywhere", () => {
    expect(argumentCheck(() => ({ type: "object" }))({ a: many(20_000, () => 1) })).toEqual([
      { path: "/a", message: "has too many values: at most 10000 can be checked" },
    ]);
  });
});

/** Schemas in which everything is combined with everything, some of it harmful or odd. */
const schemas: fc.Arbitrary<JsonSchema> = fc
  .letrec<{ node: Record<string, unknown> }>((tie) => {
    const node = tie("node");
    const several = fc.array(node, { minLength: 1, maxLength: 3 });
    const pattern = fc.constantFrom("^a", "a$", "^(a+)+$", "^[ab]{2}$", "(");
    const map = fc.dictionary(fc.constantFrom("a", "b", "x1"), node, { maxKeys: 2 });
    return {
      node: fc.oneof(
        { maxDepth: 3, depthSize: "small" },
        fc.constantFrom<Record<string, unknown>>(
          {},
          { type: "string" },
          { type: "object" },
          { type: ["array", "null"] },
          { $ref: "#/$defs/d" },
        ),
        fc.record(
          {
            type: fc.constantFrom("string", "object", "array", "integer", "text"),
            pattern,
            minLength: fc.constantFrom(1, 2, -1, "1"),
            minimum: fc.constantFrom(0, 2, true),
            enum: fc.constantFrom(["a"], [1, {}], []),
            const: fc.constantFrom("a", 1, [1]),
            required: fc.constantFrom(["a"], ["a", "b"], "a"),
            properties: map,
            patternProperties: fc.dictionary(fc.constantFrom("^a", "^(a+)+$", "x"), node, { maxKeys: 2 }),
            additionalProperties: fc.oneof(fc.boolean(), node),
            propertyNames: node,
            items: fc.oneof(node, several),
            prefixItems: several,
            uniqueItems: fc.boolean(),
            contains: node,
            not: node,
            anyOf: several,
            allOf: several,
            oneOf: several,
            if: node,
            // biome-ignore lint/suspicious/noThenProperty: it is a keyword of JSON Schema
            then: node,
            else: node,
            $ref: fc.constantFrom("#/$defs/d", "#/nowhere"),
          },
          { requiredKeys: [] },
        ),
      ),
    };
  })
  .node.chain((root) =>
    fc
      .constantFrom<JsonSchema>(
        { type: "string" },
        { properties: { a: { pattern: "^(a+)+$" } } },
        { not: {} },
      )
      .map((d) => ({ ...root, $defs: { d } })),
  );

type Json = Exclude<JsonObject[string], undefined>;

const values = fc.dictionary(
  fc.constantFrom("a", "b", "aa", "x1", "c"),
  fc.letrec<{ value: Json }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom<Json[]>("a", "aa", "b", "", 1, -1, true, null, "ab!"),
      fc.array(tie("value"), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom("a", "b", "x1"), tie("value"), { maxKeys: 2 }),
    ),
  })).value,
  { maxKeys: 3 },
);

test("nothing is refused that the schema accepts, whatever the schema and arguments", () => {
  let refusals = 0;
  fc.assert(
    fc.property(schemas, values, (schema, value) => {
      if (validator({ allOf: [relax(schema).schema] }).is(value)) return;
      refusals += 1;
      const original = takes(schema, value);
      if (original !== undefined) expect(original).toBe(false);
    }),
    { numRuns: 400 },
  );
  expect(refusals).toBeGreaterThan(50);
});

/** Whether typebox accepts the value by the schema itself; undefined if it cannot decide. */
function takes(schema: JsonSchema, value: JsonObject): boolean | undefined {
  try {
    return validator(schema).is(value);
  } catch {
    return undefined; // an invalid pattern, or a reference to itself
  }
}
