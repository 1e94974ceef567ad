import { expect, test } from "bun:test";
import fc from "fast-check";
import { trimEndOf } from "../../src/base/trim-end.ts";

test("the result equals that of the regular expression", () => {
  const text = fc.string({ unit: fc.constantFrom("/", "a", "_"), maxLength: 30 });
  fc.assert(fc.property(text, (given) => expect(trimEndOf(given, "/")).toBe(given.replace(/\/+$/, ""))));
});

test("a text of millions of runs is scanned once from its end", () => {
  const text = `${"/".repeat(5_000_000)}x`;
  expect(trimEndOf(text, "/")).toBe(text);
  expect(trimEndOf("/".repeat(5_000_000), "/")).toBe("");
});
