import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  findExcess,
  type JsonExcess,
  JsonMeter,
  JsonTooLarge,
  MAX_MEMBERS,
  MAX_NESTING,
  outlineJson,
  parseJson,
} from "../../src/base/json-limits.ts";

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const nested = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);

/** How deeply objects and arrays are nested in a parsed value. */
function depthOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

/** The depth that the meter finds: the lowest limit that it accepts. */
function countedDepth(json: string): number {
  let levels = 0;
  while (new JsonMeter({ levels }).add(encode(json))) levels++;
  return levels;
}

/**
 * Items and properties of a parsed value. An empty array or object counts one; a name that may be an integer counts
 * four.
 */
function membersOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const members = Object.values(value);
  const integers = Array.isArray(value)
    ? []
    : Object.keys(value).filter((name) => MAYBE_INTEGER.test(JSON.stringify(name)));
  const own = Math.max(1, members.length) + 3 * integers.length;
  return members.reduce((sum: number, each) => sum + membersOf(each), own);
}
const MAYBE_INTEGER = /^"[\d\\]/;

/** Text full of quotes, escapes and brackets. */
const trickyText = fc.string({
  unit: fc.constantFrom('"', "\\", "[", "]", "{", "}", "a", "ž", "𝒳", "\n", "\ud800", "4"),
  maxLength: 120,
});
const json = fc
  .anything({ key: trickyText, values: [trickyText, fc.integer(), fc.constant(null)], maxDepth: 8 })
  .map((value) => JSON.stringify(value) ?? "null");

describe("the nesting of JSON, counted over its bytes", () => {
  test("equals that of the parsed value, for any JSON", () => {
    fc.assert(
      fc.property(json, (text) => expect(countedDepth(text)).toBe(depthOf(JSON.parse(text)))),
      { numRuns: 500 },
    );
  });

  test("does not depend on how the bytes are cut into parts", () => {
    fc.assert(
      fc.property(json, fc.array(fc.nat(40), { maxLength: 40 }), (text, cuts) => {
        const bytes = encode(text);
        const depth = depthOf(JSON.parse(text));
        for (const [levels, fits] of [
          [depth, true],
          [depth - 1, false],
        ] as const) {
          const meter = new JsonMeter({ levels });
          let at = 0;
          let isWithin = true;
          for (const cut of [...cuts, bytes.length]) {
            isWithin &&= meter.add(bytes.subarray(at, at + cut)) === null;
            at += cut;
          }
          expect(isWithin).toBe(fits || depth === 0);
        }
      }),
      { numRuns: 500 },
    );
  });

  test.each([
    ["arrays", nested(MAX_NESTING), false],
    ["one array more", nested(MAX_NESTING + 1), true],
    ["objects", `${'{"a":'.repeat(MAX_NESTING)}1${"}".repeat(MAX_NESTING)}`, false],
    ["one object more", `${'{"a":'.repeat(MAX_NESTING + 1)}1${"}".repeat(MAX_NESTING + 1)}`, true],
    ["fifty thousand levels", nested(50_000), true],
    ["many, one after another", `[${"[],".repeat(50_000)}[]]`, false],
    ["brackets that are never closed", "[".repeat(50_000), true],
    ["closing brackets before opening ones", `${"]".repeat(500)}${"[".repeat(101)}`, true],
    ["brackets in a string", JSON.stringify("[".repeat(50_000)), false],
    ["brackets in a key", JSON.stringify({ ["{".repeat(50_000)]: 1 }), false],
    ["brackets after an escaped quote", JSON.stringify(`"${"[".repeat(500)}`), false],
    ["brackets after an escaped backslash and the end", `["\\\\",${nested(101)}]`, true],
    ["brackets after many backslashes", `["${"\\\\".repeat(500)}",${nested(101)}]`, true],
    ["an escaped quote far into a string", `["${"a".repeat(90)}\\"${"[".repeat(500)}"]`, false],
    ["a quote as an escape", `["\\u0022",${nested(101)}]`, true],
    ["a byte order mark", `\uFEFF${nested(101)}`, true],
    ["letters that resemble brackets in their low bits", "śŻ≛ɛ".repeat(500), false],
    ["a string without an end", `"${"[".repeat(500)}`, false],
    ["nothing", "", false],
  ])("%s", (_name, text, isTooDeep) => {
    const excess = isTooDeep ? "levels" : null;
    const limits = { members: Infinity };
    expect([findExcess(text, limits), findExcess(encode(text), limits)]).toEqual([excess, excess]);
  });

  test("looks at each byte at most once, including the native search for a string's end", () => {
    let looked = 0;
    class Counted extends Uint8Array {
      override indexOf(byte: number, from?: number): number {
        const found = super.indexOf(byte, from);
        looked += (found < 0 ? this.length : found) - (from ?? 0);
        return found;
      }
    }
    const text = `["${"x".repeat(200)}${`\\"${"y".repeat(60)}`.repeat(5_000)}"]`;
    const bytes = new Counted(encode(text));
    expect(new JsonMeter().add(bytes)).toBeNull();
    expect(looked).toBeLessThanOrEqual(bytes.length);
  });
});

test("text nested too deeply is refused before parsing; other errors are those of JSON.parse", () => {
  expect(() => parseJson(nested(101))).toThrow(JsonTooLarge);
  expect(() => parseJson(`${nested(101)} and no JSON`)).toThrow(JsonTooLarge);
  expect(() => parseJson("{")).toThrow(SyntaxError);
  expect(parseJson(nested(3))).toEqual([[[]]]);
  expect(() => parseJson(nested(3), { levels: 2 })).toThrow("JSON may have 2 levels");
  expect(() => parseJson("[1,2,3]", { members: 2 })).toThrow("JSON may have 2 members");
});

describe("the members of JSON, counted over its bytes", () => {
  test("equal those of the parsed value, for any JSON, however it is cut into parts", () => {
    fc.assert(
      fc.property(json, fc.nat(40), (text, cut) => {
        const value: unknown = JSON.parse(text);
        const members = membersOf(value);
        const bytes = encode(text);
        for (const [limit, excess] of [
          [members, null],
          [members - 1, "members"],
        ] as const) {
          if (limit < 0) continue;
          const meter = new JsonMeter({ levels: Infinity, members: limit });
          expect(meter.add(bytes.subarray(0, cut)) ?? meter.add(bytes.subarray(cut))).toBe(excess);
        }
      }),
      { numRuns: 500 },
    );
  });

  const repeat = (text: string, times: number): string => Array.from({ length: times }, () => text).join();
  const most = MAX_MEMBERS;
  test.each<[name: string, text: string, excess: JsonExcess | null]>([
    ["as many items as allowed", `[${repeat("0", most)}]`, null],
    ["one item too many", `[${repeat("0", most + 1)}]`, "members"],
    ["as many properties as allowed", `{${repeat('"a":0', most)}}`, null],
    ["one property too many, all with one name", `{${repeat('"a":0', most + 1)}}`, "members"],
    ["half as many empty arrays", `[${repeat("[]", most / 2)}]`, null],
    ["one empty array too many", `[${repeat("[]", most / 2 + 1)}]`, "members"],
    ["empty objects", `[${repeat("{}", most / 2 + 1)}]`, "members"],
    ["an object for each item", `[${repeat('{"1":0}', most / 2 + 1)}]`, "members"],
    ["a quarter as many integers as names", `{${repeat('"4294967290":0', most / 4)}}`, null],
    ["one integer too many", `{${repeat('"4294967290":0', most / 4 + 1)}}`, "members"],
    ["integers that begin with an escape", `{${repeat('"\\u0034294":0', most / 4 + 1)}}`, "members"],
    ["integers as items", `[${repeat('"4294967290"', most)}]`, null],
    ["integers as values", `{${repeat('"a":"4294967290"', most)}}`, null],
    ["commas in a string", JSON.stringify(",".repeat(most * 2)), null],
    ["commas in a key, after an escaped quote", JSON.stringify({ [`"${",".repeat(most * 2)}`]: 1 }), null],
    ["a long text", JSON.stringify({ text: "x, y\n[".repeat(most) }), null],
    ["commas that are not JSON", ",".repeat(most + 1), "members"],
    ["closing brackets that were never opened", "][".repeat(most + 1), "members"],
  ])("%s", (_name, text, excess) => {
    expect([findExcess(text), findExcess(encode(text))]).toEqual([excess, excess]);
  });

  test("restart with the next text", () => {
    const meter = new JsonMeter({ members: 3, strings: 1 });
    expect(meter.add(encode('["a",0,0]'))).toBeNull();
    meter.reset();
    expect(meter.add(encode('["a",0,0]'))).toBeNull();
    expect(meter.add(encode(","))).toBe("members");
  });

  test("may be many if they are numbers, when only strings are limited", () => {
    const limits = { members: 4 * most, strings: 10 };
    expect(findExcess(`{"data":[${repeat("0.1", 3 * most)}]}`, limits)).toBeNull();
    expect(findExcess(`{"data":[${repeat('"a"', 10)}]}`, limits)).toBe("strings");
    expect(new JsonTooLarge("strings", limits).message).toBe("JSON may have 10 strings");
  });
});

describe("an outline", () => {
  test("keeps the first level of any JSON", () => {
    const flat = (value: unknown): unknown => (typeof value === "object" && value !== null ? null : value);
    fc.assert(
      fc.property(json, (text) => {
        const value: unknown = JSON.parse(text);
        const expected = Array.isArray(value)
          ? value.map(flat)
          : typeof value === "object" && value !== null
            ? Object.fromEntries(Object.entries(value).map(([key, each]) => [key, flat(each)]))
            : value;
        expect(JSON.parse(outlineJson(text))).toEqual(expected);
      }),
    );
  });

  test.each([["["], ["[[["], ['{"a":['], ['{"id":1,"a":"[[']])("of %s is no JSON either", (text) => {
    expect(() => JSON.parse(outlineJson(text))).toThrow(SyntaxError);
  });

  test("reads the id of a message nested 50,000 levels deep", () => {
    const message = `{"jsonrpc":"2.0","params":${nested(50_000)},"id":7,"method":"a\\"[b"}`;
    expect(JSON.parse(outlineJson(message))).toEqual({
      jsonrpc: "2.0",
      params: null,
      id: 7,
      method: 'a"[b',
    });
  });
});
