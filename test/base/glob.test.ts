import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { covers, isGlob, matchesAny, restrictsModel, restrictsTool } from "../../src/base/glob.ts";

const glob = (pattern: string) => (text: string) => matchesAny([pattern], text);

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 7 });

/** The same pattern as a regular expression. It backtracks, which is fine for texts this short. */
function oracle(pattern: string): RegExp {
  const escaped = pattern.replace(/[\\^$.+()[\]{}|/-]/g, "\\$&");
  return new RegExp(`^${escaped.replaceAll("*", "[^]*").replaceAll("?", "[^*]")}$`);
}

/** Compares each character of the pattern with each position of the text. */
function naive(given: string, on: string): boolean {
  let ends = [true, ...Array<boolean>(on.length).fill(false)];
  for (const wanted of given) {
    const next = Array<boolean>(on.length + 1).fill(false);
    for (let at = 0; at <= on.length; at++) {
      if (wanted === "*") next[at] = ends[at] === true || (at > 0 && next[at - 1] === true);
      else if (at > 0 && ends[at - 1] === true) {
        const found = on[at - 1];
        next[at] = wanted === "?" ? found !== "*" : found === wanted;
      }
    }
    ends = next;
  }
  return ends[on.length] === true;
}

/** Few letters, so patterns match now and then. */
const text = fc.string({ unit: fc.constantFrom("a", "b", ".", "/", "\n"), maxLength: 12 });
const pattern = fc.string({
  unit: fc.constantFrom("a", "b", ".", "/", "?", "*", "*"),
  minLength: 1,
  maxLength: 8,
});

describe("a pattern", () => {
  test.each([
    ["vault.search", "vault.searching", false],
    ["vault.*", "vault", false],
    ["*.search", "vaultsearch", false],
    ["a*a", "a", false],
    ["ab*ba", "aba", false],
    ["a*b*a", "aba", true],
    ["*", "", true],
    ["**", "anything/at all", true],
    ["ollama/*", "ollama/llama3.2:latest", true],
    ["a.c", "abc", false],
    ["[ab]", "a", false],
    ["[ab]", "[ab]", false],
    ["?", "a", true],
    ["?", "", false],
    ["?", "ab", false],
    ["gpt-?", "gpt-5", true],
    ["gpt-?*", "gpt-5-mini", true],
    ["*-?ini", "gpt-5-mini", true],
    ["*?b?*", "ab", false],
    ["*?b?*", "xaabc", true],
    ["VAULT.*", "vault.search", false],
    ["*aab", "aaab", true],
    ["*ab*ab*", "abab", true],
    ["*ab*ab", "aab", false],
  ])("%p on %p: %p", (given, on, expected) => {
    expect(glob(given)(on)).toBe(expected);
    expect(matchesAny(["no", given], on)).toBe(expected);
  });

  test("matches like the equivalent regular expression", () => {
    fc.assert(
      fc.property(pattern, text, (given, on) => {
        expect(glob(given)(on)).toBe(oracle(given).test(on));
      }),
      { numRuns: 20_000 },
    );
  });

  // Matches must not be tried one by one: with 2^200 of them, this test would never end.
  test("designed to backtrack is answered quickly", () => {
    const hostile = glob(`${"*a".repeat(200)}*b`);
    expect(hostile("a".repeat(20_000))).toBe(false);
    expect(hostile(`${"a".repeat(20_000)}b`)).toBe(true);
  });

  // Comparing the part at each position takes 2.5 * 10^11 steps.
  test("with many wildcards for one character is answered quickly", () => {
    const text = "a".repeat(1_000_000);
    const hostile = glob(`*${"?".repeat(500_000)}z*`);
    expect(hostile(text)).toBe(false);
    expect(hostile(`${text}z`)).toBe(true);
  });

  test("matches long texts, and other patterns, like a naive matcher", () => {
    const letter = fc.constantFrom(..."aaaaaaaaaaaaaaaaab*?é");
    const long = fc.string({ unit: letter, maxLength: 150 });
    const parts = fc.array(fc.string({ unit: fc.constantFrom(..."????????aab"), maxLength: 40 }), {
      minLength: 2,
      maxLength: 4,
    });
    const lists = fc.array(
      parts.map((all) => all.join("*")).filter((made) => made !== ""),
      { minLength: 1, maxLength: 3 },
    );
    let matched = 0;
    fc.assert(
      fc.property(lists, long, (patterns, on) => {
        const expected = patterns.some((each) => naive(each, on));
        if (expected) matched += 1;
        expect(matchesAny(patterns, on)).toBe(expected);
        // A list that remembers a name gives the same answer again.
        expect(matchesAny(patterns, on)).toBe(expected);
      }),
      { numRuns: 10_000 },
    );
    expect(matched).toBeGreaterThan(500);
  });

  test("is compiled again after more lists than are kept", () => {
    for (let index = 0; index < 20_001; index++) expect(glob(`p${index}*`)(`p${index}x`)).toBe(true);
    expect(glob("p1*")("p1x")).toBe(true);
  });
});

test("no pattern at all matches nothing", () => {
  expect(matchesAny([], "")).toBe(false);
});

test("a covered pattern matches nothing that its cover does not match", () => {
  /**
   * A pattern, the same pattern with a part of it replaced by a star, and a text that it matches, built from fillings
   * of its own stars.
   */
  const covered = fc
    .tuple(
      pattern,
      fc.nat(8),
      fc.nat(8),
      fc.constantFrom("*", "?"),
      fc.array(text, { minLength: 9, maxLength: 9 }),
    )
    .map(([inner, from, length, wildcard, fillings]) => ({
      inner,
      outer: `${inner.slice(0, from)}${wildcard}${inner.slice(from + length)}`,
      on: inner
        .replaceAll("?", "b")
        .split("*")
        .reduce((before, part, index) => `${before}${fillings[index] ?? ""}${part}`),
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

describe("a text that is not a glob", () => {
  test.each(["openai/gpt-[45]*", "{a,b}", "!openai/*", "a b", "a,b", "^a$", "a\\b", "é", "", " a", "a "])(
    "%p grants nothing, and restricts everything",
    (given) => {
      expect(isGlob(given)).toBe(false);
      expect(matchesAny([given], given)).toBe(false);
      expect(restrictsModel([given], "up/any")).toBe(true);
      expect(restrictsTool([given], "up.any")).toBe(true);
    },
  );
});

describe("a restriction", () => {
  test.each([
    [["openai/GPT-4*"], "openai/gpt-4o", true],
    [["openai/gpt-4*"], "openai/GPT-4o", true],
    [["gpt-4*"], "openai/gpt-4o", true],
    [["GPT-?"], "openai/gpt-5", true],
    [["openai"], "openai/gpt-5", false],
    [["up/small"], "up/smaller", false],
    [["aws/anthropic.*"], "aws/us.anthropic.claude-5", true],
    [["aws/anthropic.*"], "aws/us-gov.anthropic.claude-5-v1:0", true],
    [["anthropic.*"], "aws/APAC.anthropic.claude-5", true],
    [["aws/openai.gpt-5.5"], "aws/global.openai.gpt-5.5", true],
    [["aws/anthropic.*"], "aws/arn:aws:bedrock:eu-west-1::foundation-model/anthropic.claude-5", true],
    [["aws/anthropic.*"], "aws/arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-5", true],
    // A pattern that names a region denies only that region.
    [["aws/us.*"], "aws/eu.anthropic.claude-5", false],
    [["aws/us.*"], "aws/anthropic.claude-5", false],
    [["aws/5"], "aws/gpt.5", false],
    [[], "up/small", false],
  ])("%p denies the model %p: %p", (patterns, model, expected) => {
    expect(restrictsModel(patterns, model)).toBe(expected);
  });

  test.each([
    [["github.Delete_*"], "github.delete_repo", true],
    [["delete_*"], "github.delete_repo", true],
    [["github__delete_*"], "github.delete_repo", true],
    [["github.delete_rep?"], "github.delete_repo", true],
    [["github.search_*"], "github.delete_repo", false],
    [[], "github.delete_repo", false],
  ])("%p demands an approval for %p: %p", (patterns, tool, expected) => {
    expect(restrictsTool(patterns, tool)).toBe(expected);
  });
});

test("a wildcard for many characters is not covered by a wildcard for one", () => {
  expect(covers(["vault.?"], "vault.*")).toBe(false);
  expect(covers(["vault.??"], "vault.?*")).toBe(false);
  expect(covers(["vault.?"], "vault.?")).toBe(true);
  expect(covers(["vault.*"], "vault.?")).toBe(true);
});
