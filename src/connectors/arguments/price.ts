import { isObject, sizeOf } from "./json.ts";
import type { SafeSchema } from "./relax.ts";

/**
 * The highest cost of finding what is wrong with a value, in steps of about a nanosecond, as measured with typebox
 * 1.4.3. The lists are by depth below the value that the schema is for: an object's properties are one level deeper.
 */
export interface Price {
  /** Per value and per name at that depth. */
  readonly values: readonly number[];
  /** Per character of the texts and names at that depth and below. */
  readonly characters: readonly number[];
  readonly hasFormats: boolean;
}

type Given = Readonly<Record<string, unknown>>;
type Tries = ReadonlyMap<string, number>;

const NODE = 400;
/** Per pair of branches of a choice: the list of matching branches is copied for each match. */
const TWO_BRANCHES = 2;
const PROPERTY = 100;
const VALUE_OF_ENUM = 50;
/** Reading one character, in a try of a pattern or a comparison. */
const LOOK = 2;
/** Per character, for each of many texts compared at once: most differ in their first character. */
const LOOK_AMONG = 0.1;
const FORMAT = 300;

const FREE: Price = { values: [], characters: [], hasFormats: false };

/** The price of a schema made by `relax`. */
export function priceOf({ schema, tries }: SafeSchema): Price {
  if (!isObject(schema)) return once(NODE);
  const inner = (each: unknown): Price => priceOf({ schema: isObject(each) ? each : true, tries });
  return sum([
    data(schema),
    texts(schema, tries),
    ...["allOf", "anyOf", "oneOf"].map((key) => branches(listOf(schema[key]).map(inner))),
    ...["not", "if", "then", "else"]
      .filter((key) => schema[key] !== undefined)
      .map((key) => inner(schema[key])),
    properties(schema, tries, inner),
    items(schema, inner),
  ]);
}

function data(schema: Given): Price {
  const given = [schema.enum, schema.const, schema.required].filter((each) => each !== undefined);
  const size = sizeOf(given, Number.POSITIVE_INFINITY) - 1;
  return { ...once(NODE + VALUE_OF_ENUM * size), characters: [LOOK_AMONG * size] };
}

function texts(schema: Given, tries: Tries): Price {
  const { minLength, maxLength, pattern, format } = schema;
  let looks = minLength === undefined && maxLength === undefined ? 0 : 2 * LOOK;
  if (typeof pattern === "string") looks += priceOfPattern(pattern, tries);
  if (format !== undefined) looks += FORMAT;
  return { values: [], characters: [looks], hasFormats: format !== undefined };
}

function priceOfPattern(pattern: string, tries: Tries): number {
  return LOOK * (tries.get(pattern) ?? Number.POSITIVE_INFINITY);
}

function branches(each: readonly Price[]): Price {
  return sum([once(TWO_BRANCHES * each.length ** 2), ...each]);
}

function properties(schema: Given, tries: Tries, inner: (each: unknown) => Price): Price {
  const named = Object.values(mapOf(schema.properties)).map(inner);
  const patterns = Object.entries(mapOf(schema.patternProperties));
  // A value has one name, so only the most expensive property counts.
  const held: Price[] = [dearest(named), ...patterns.map(([, each]) => inner(each))];
  let looks = 0;
  for (const [pattern] of patterns) looks += 2 * priceOfPattern(pattern, tries);
  if (schema.propertyNames !== undefined) held.push(inner(schema.propertyNames));
  if (schema.additionalProperties !== undefined) {
    held.push(inner(schema.additionalProperties), once(LOOK * named.length));
    looks += LOOK + LOOK_AMONG * named.length;
  }
  held.push({ ...FREE, values: [PROPERTY * patterns.length], characters: [looks] });
  return sum([once(PROPERTY * named.length), deeper(sum(held))]);
}

function items(schema: Given, inner: (each: unknown) => Price): Price {
  const tuple = [...listOf(schema.items), ...listOf(schema.prefixItems)].map(inner);
  const others = [schema.items, schema.additionalItems].filter(
    (each) => each !== undefined && !Array.isArray(each),
  );
  return sum([once(PROPERTY * tuple.length), deeper(sum([dearest(tuple), ...others.map(inner)]))]);
}

function once(steps: number): Price {
  return { ...FREE, values: [steps] };
}

function deeper({ values, characters, hasFormats }: Price): Price {
  return { values: [0, ...values], characters: [0, ...characters], hasFormats };
}

function sum(prices: readonly Price[]): Price {
  return joined(prices, (one, other) => one + other);
}

/** Prices of alternatives, of which one is paid: at least as high as each of them. */
function dearest(prices: readonly Price[]): Price {
  return joined(prices, Math.max);
}

function joined(prices: readonly Price[], join: (one: number, other: number) => number): Price {
  const values: number[] = [];
  const characters: number[] = [];
  let hasFormats = false;
  const add = (to: number[], list: readonly number[]): void => {
    for (let depth = 0; depth < list.length; depth += 1) to[depth] = join(to[depth] ?? 0, list[depth] ?? 0);
  };
  for (const price of prices) {
    add(values, price.values);
    add(characters, price.characters);
    hasFormats ||= price.hasFormats;
  }
  return { values, characters, hasFormats };
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function mapOf(value: unknown): Given {
  return isObject(value) ? value : {};
}
