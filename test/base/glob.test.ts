import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { covers, glob, matchesAny } from "../../src/base/glob.ts";

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 7 });

/** The same meaning as an expression, which backtracks, but on texts this short may. */
function oracle(pattern: string): RegExp {
  const escaped = pattern.split("*").map((part) => part.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&"));
  return new RegExp(`^${escaped.join("[^]*")}$`);
}

/** Few letters, so that patterns match now and then. */
const text = fc.string({ unit: fc.constantFrom("a", "b", ".", "/", "\n"), maxLength: 12 });
const pattern = fc.string({ unit: fc.constantFrom("a", "b", ".", "/", "\n", "*", "*"), maxLength: 8 });

describe("a pattern", () => {
  test.each([
    ["vault.search", "vault.searching", false],
    ["vault.*", "vault", false],
    ["*.search", "vaultsearch", false],
    ["a*a", "a", false],
    ["ab*ba", "aba", false],
    ["a*b*a", "aba", true],
    ["*", "", true],
    ["", "", true],
    ["", "a", false],
    ["**", "anything/at all", true],
    ["ollama/*", "ollama/llama3.2:latest", true],
    ["a.c", "abc", false],
    ["[ab]", "a", false],
    ["?", "a", false],
    ["VAULT.*", "vault.search", false],
    ["*aab", "aaab", true],
    ["*ab*ab*", "abab", true],
    ["*ab*ab", "aab", false],
  ])("%p on %p: %p", (given, on, expected) => {
    expect(glob(given)(on)).toBe(expected);
    expect(matchesAny(["no", given], on)).toBe(expected);
  });

  test("means what the expression of the same meaning means", () => {
    fc.assert(
      fc.property(pattern, text, (given, on) => {
        expect(glob(given)(on)).toBe(oracle(given).test(on));
      }),
      { numRuns: 20_000 },
    );
  });

  // Ways to match are not tried one after the other: of 2^200 of them, no test would see the end.
  test("made to backtrack is answered", () => {
    const hostile = glob(`${"*a".repeat(200)}*b`);
    expect(hostile("a".repeat(20_000))).toBe(false);
    expect(hostile(`${"a".repeat(20_000)}b`)).toBe(true);
  });

  test("is compiled anew after more patterns than are kept", () => {
    for (let index = 0; index < 20_001; index++) expect(glob(`p${index}*`)(`p${index}x`)).toBe(true);
    expect(glob("p1*")("p1x")).toBe(true);
  });
});

test("no pattern at all matches nothing", () => {
  expect(matchesAny([], "")).toBe(false);
});

test("a pattern that is covered matches nothing that its cover does not", () => {
  /** A pattern, a part of it replaced by a star, and a text that it matches: what stands for its own stars. */
  const covered = fc
    .tuple(pattern, fc.nat(8), fc.nat(8), fc.array(text, { minLength: 9, maxLength: 9 }))
    .map(([inner, from, length, fillings]) => ({
      inner,
      outer: `${inner.slice(0, from)}*${inner.slice(from + length)}`,
      on: inner.split("*").reduce((before, part, index) => `${before}${fillings[index] ?? ""}${part}`),
    }));
  let holds = 0;
  fc.assert(
    fc.property(covered, ({ inner, outer, on }) => {
      expect(glob(inner)(on)).toBe(true);
      if (!covers([outer], inner)) return;
      holds += 1;
      expect(matchesAny([outer], on)).toBe(true);
    }),
    { numRuns: 5_000 },
  );
  expect(holds).toBeGreaterThan(1_000);
});
