import { expect, test } from "bun:test";
import fc from "fast-check";
import { trimEndOf } from "../../src/base/trim-end.ts";

test("what is left is what the expression leaves", () => {
  const text = fc.string({ unit: fc.constantFrom("/", "a", "_"), maxLength: 30 });
  fc.assert(fc.property(text, (given) => expect(trimEndOf(given, "/")).toBe(given.replace(/\/+$/, ""))));
});

test("a text of millions of runs is looked at once from its end", () => {
  const text = `${"/".repeat(5_000_000)}x`;
  expect(trimEndOf(text, "/")).toBe(text);
  expect(trimEndOf("/".repeat(5_000_000), "/")).toBe("");
});
