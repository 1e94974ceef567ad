import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { eachLeaf } from "../../../src/vault/read/json-leaves.ts";
import { readText, UnreadableDocument } from "../../../src/vault/read/read.ts";

const rowsOf = async (json: string) => {
  const { text, blocks } = await readText(json, "application/json");
  expect(blocks.every(({ kind }) => kind === "row")).toBe(true);
  return blocks.map(({ start, end }) => text.slice(start, end));
};

describe("JSON is refused", () => {
  test.each([
    ["with a bare word", '{"a": 1,\n "b": x}', 'expected a value, found "x" at line 2, column 7'],
    ["that ends early", '{"a": [1, 2', 'expected "," or "]", found the end'],
    ["with an open string", '["a', 'expected a closing "'],
    ["with an extra comma", "[1,]", 'found "]" at line 1, column 4'],
    ["with more after it", "{} []", 'expected nothing more, found "["'],
    ["with a bare key", "{a: 1}", "expected a key in double quotes"],
    ["with an invalid escape", '["\\x"]', "valid escapes"],
    ["with a line end in a string", '["a\nb"]', "without control characters"],
    ["without colon", '{"a" 1}', 'expected ":"'],
    ["with an invalid number", "[01]", 'expected "," or "]", found "1"'],
    [
      "too deep",
      `${"[".repeat(101)}1${"]".repeat(101)}`,
      "objects and arrays nested more than 100 levels deep",
    ],
    ["much too deep", "[".repeat(1_000_000), "objects and arrays nested more than 100 levels deep"],
    ["without values", '[{}, [], ""]', "contains no text"],
    ["that expands to too much", `{"${"k".repeat(100_000)}":[${"1,".repeat(300)}1]}`, "20,000,000"],
  ])("%s", async (_, json, message) => {
    const error = await readText(json, "application/json").catch((reason) => reason);
    expect(error).toBeInstanceOf(UnreadableDocument);
    expect(error.message).toContain(message);
  });
});

describe("JSON is read", () => {
  test.each<[string, string, string[]]>([
    [
      "as items of an array",
      '[{"a": 1, "b": {"c": "x"}}, {"a": 2}, 3, [4, 5]]',
      ["a: 1\nb.c: x", "a: 2", "3", "0: 4\n1: 5"],
    ],
    [
      "as members of an object",
      '{"a": "x", "b": {"c": 1, "d": [true, null]}}',
      ["a: x", "b.c: 1\nb.d.0: true\nb.d.1: null"],
    ],
    [
      "as items of a member",
      '{"items": [{"n": 1, "m": 2}, {"n": 3}]}',
      ["items.0.n: 1\nitems.0.m: 2", "items.1.n: 3"],
    ],
    ["as one value", ' "a\\nb\\u00e9" ', ["a\nbé"]],
    [
      "with exact numbers",
      "[12345678901234567890, 1.10, 1E+5, -0]",
      ["12345678901234567890", "1.10", "1E+5", "-0"],
    ],
    ["in its own order", '{"b": 1, "2": 2, "1": 3, "b": 4}', ["b: 1", "2: 2", "1: 3", "b: 4"]],
    ["without control characters", '["a\\u0000b\\u0007c", "\\ud800"]', ["abc", "\uFFFD"]],
    ["after a byte order mark", "\uFEFF[1]", ["1"]],
  ])("%s", async (_, json, expected) => {
    expect(await rowsOf(json)).toEqual(expected);
  });
});

function leavesOf(value: unknown, path: readonly string[] = []): string[] {
  if (typeof value !== "object" || value === null) return [`${path.join("/")}=${value}`];
  return Object.entries(value).flatMap(([key, item]) => leavesOf(item, [...path, key]));
}

test("accepts and refuses the same texts as JSON.parse", () => {
  const valid = fc.json().map((json) => JSON.stringify(JSON.parse(json), null, json.length % 3));
  const broken = fc
    .tuple(valid, fc.nat(), fc.constantFrom("", ",", "}", "]", '"', "\\", "0", "e", "\n", "-"))
    .map(([json, at, piece]) => {
      const place = at % (json.length + 1);
      return json.slice(0, place) + piece + json.slice(place + 1);
    });
  fc.assert(
    fc.property(fc.oneof(valid, broken), (json) => {
      let parsed: unknown;
      let isValid = true;
      try {
        parsed = JSON.parse(json);
      } catch {
        isValid = false;
      }
      const leaves: string[] = [];
      const read = () => eachLeaf(json, ({ path, value }) => leaves.push(`${path.join("/")}=${value}`));
      if (!isValid) expect(read).toThrow("is not valid JSON");
      else {
        read();
        const numbers = (lines: string[]) =>
          lines.map((line) => line.replace(/=-?(?:\d|Infinity).*$/s, "=number")).sort();
        if (new Set(leaves.map((line) => line.split("=")[0])).size === leaves.length) {
          expect(numbers(leaves)).toEqual(numbers(leavesOf(parsed)));
        }
      }
    }),
    { numRuns: 1_000 },
  );
});
