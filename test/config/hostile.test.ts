import { describe, expect, test } from "bun:test";
import { load } from "./support.ts";

const levels = Array.from(
  { length: 9 },
  (_, index) => `l${index + 1}: &l${index + 1} [${"*l".concat(`${index}`, ",").repeat(9)}]`,
);

const CASES: [name: string, yaml: string, message: string][] = [
  ["a tab as indentation", "limits:\n\tqueued_tasks: 1", "yaml:2:1: a tab indents the line; use spaces"],
  ["a key twice", "listen: a:1\nlisten: a:2", "yaml:2:1: the key is repeated; it is first on line 1"],
  ["a key twice, as a number and as text", 'tiers: { 1: {}, "1": {} }', "yaml:1:17: the key is repeated"],
  ["a list as key", "[a, b]: 1", "a key must be a word or a number"],
  ["no key", ": 1", "a key must be a word or a number"],
  ["an open bracket", "tiers: [1", "yaml:1:10: the indentation is wrong, or a [ or { is not closed"],
  ["an open quote", 'listen: "a', "yaml:1:11: a quote, comma or colon is missing"],
  ["a colon in a value", "listen: a: b", "yaml:1:9: a mapping cannot start here"],
  ["text after a quote", "listen: 'a' b", "yaml:1:13: this is unexpected here"],
  ["a tag", "listen: !!js/function x", "yaml:1:9: tags (!name) are not supported"],
  ["two documents", "listen: a:1\n---\nlisten: a:2", "yaml:2:1: a second document starts here"],
  ["an alias to nothing", "listen: *x", "yaml:1:9: an alias names an anchor that does not exist"],
  ["an alias to itself", "tiers: &t { 1: *t }", "the nesting is too deep"],
  ["a billion laughs", ["l0: &l0 [lol]", ...levels].join("\n"), "more than 100 aliases are used"],
  ["a list as the file", "- listen: a", "yaml:1:1: the file must be a mapping"],
  ["a word as the file", "hello", "yaml:1:1: the file must be a mapping"],
  ["a thousand levels", "{a: ".repeat(1000), "yaml:1:"],
  ["a hundred thousand levels", "[".repeat(100_000), "the nesting is too deep"],
  ["a megabyte and more", "#".repeat(1024 * 1024 + 1), "yaml: the file is larger than 1024 KiB"],
  [
    "a megabyte in wide characters",
    "#".concat("é".repeat(600_000)),
    "yaml: the file is larger than 1024 KiB",
  ],
  ["50,000 keys", Array.from({ length: 50_000 }, (_, n) => `k${n}: 1`).join("\n"), "has 50000 problems"],
  ["150,000 values", `tiers: [${"1,".repeat(150_000)}]`, "the file has more than 100000 values"],
];

describe("a hostile file is refused with its place", () => {
  test.each(CASES)("%s", (_, yaml, message) => {
    expect(() => load({ yaml })).toThrow(message);
  });
});

describe("keys with a meaning in JavaScript", () => {
  test.each(["__proto__", "constructor", "toString", "hasOwnProperty"])("%s is an unknown key", (key) => {
    expect(() => load({ yaml: `${key}: { listen: "a:1" }` })).toThrow(`${key} (`);
    expect(() => load({ yaml: `limits: { ${key}: 1 }` })).toThrow(`limits.${key} (`);
  });

  test("none of them gets into the configuration", () => {
    const yaml = "providers: { a: { kind: openai, headers: { __proto__: x } } }";
    expect(() => load({ yaml })).toThrow("providers.a.headers.__proto__ (");
    expect(() => load({ yaml: "providers: { __proto__: { kind: openai } }" })).toThrow(
      "providers.__proto__ (",
    );
    expect(Object.hasOwn(Object.prototype, "listen")).toBe(false);
  });
});
