import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { triesOf } from "../../../src/connectors/arguments/pattern/tries.ts";

const triesFor = (pattern: string): number | undefined => triesOf(pattern, { left: 1_000_000 });

describe("an expression is skipped that", () => {
  test.each([
    ["repeats a group that repeats", "^(a+)+$"],
    ["repeats a group with two equal branches", "^(a|a)+$"],
    ["repeats a group that may be empty", "^(a*)*$"],
    ["repeats a group, be it in order", "^[a-z]+(-[a-z]+)*$"],
    ["repeats a group in other words", "^(?:\\w+\\s?){1,}$"],
    ["is cubic", "^.*x.*y.*z$"],
    ["is quadratic", "^\\S+@\\S+\\.\\S+$"],
    ["is quadratic by counted repetition", "^a{0,500}a{0,500}$"],
    ["is cubic by counted repetition", "^.{0,100}.{0,100}.{0,100}x$"],
    ["doubles with each optional character", `^${"a?".repeat(30)}${"a".repeat(30)}$`],
    ["doubles with each group", `^${"(a|a)".repeat(30)}$`],
    ["has empty branches without end", `^${"(|||)".repeat(20)}$`],
    ["begins anywhere", "[a-z]+$"],
    ["begins anywhere in one of its branches", "^a|b+$"],
    ["begins anywhere, since `^` is in one branch alone", "(?:^|x)[a-z]*y$|[a-z]+z"],
    ["is anchored at its end alone", "\\d+$"],
    ["has a class that holds the next one", "^\\w+\\d+\\w+$"],
    ["has letters of other scripts", "^\\p{L}+\\p{Lu}+\\p{L}+$"],
    ["looks ahead", "^(?=.*[a-z]).+$"],
    ["looks behind", "^.(?<=a)$"],
    ["refers back", "^(a)\\1$"],
    ["refers back by name", "^(?<x>a)\\k<x>$"],
    ["changes its flags", "^(?i:a)$"],
    ["is long", `^${"a".repeat(301)}`],
    ["is counted far", "^[a-z]{1,100000}$"],
    ["is counted far from inside", "^(?:[a-z]{1,500}x){1,500}$"],
    ["is none", "^[\\w-.]+("],
    ["is none with Unicode", "^[\\w-.]+$"],
  ])("%s: %s %s", (_, pattern) => {
    expect(triesFor(pattern)).toBeUndefined();
  });
});

describe("an ordinary expression is kept:", () => {
  test.each([
    ["^[a-z0-9-]+$"],
    ["^[a-zA-Z_][a-zA-Z0-9_]*$"],
    ["^\\d{4}-\\d{2}-\\d{2}$"],
    ["^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}(\\.\\d+)?(Z|[+-]\\d{2}:\\d{2})$"],
    ["^https?://"],
    ["^https?://[^\\s/$.?#].[^\\s]*$"],
    ["^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"],
    ["^[0-9a-fA-F]{24}$"],
    ["^(GET|POST|PUT|PATCH|DELETE)$"],
    ["^(?<type>asc|desc)$"],
    ["^#?([a-f0-9]{6}|[a-f0-9]{3})$"],
    ["^\\+?[1-9]\\d{1,14}$"],
    ["^[\\w.+-]+@[\\w-]+\\.[\\w.-]+$"],
    ["^-?\\d+(\\.\\d+)?$"],
    ["^(25[0-5]|2[0-4]\\d|1?\\d?\\d)(\\.(25[0-5]|2[0-4]\\d|1?\\d?\\d)){3}$"],
    ["^arn:aws:iam::\\d{12}:role/.+$"],
    ["^s3://[a-z0-9.-]{3,63}/.*$"],
    ["^[\\w-]+/[\\w.-]+$"],
    ["^.{1,255}$"],
    ["^[A-Z]{2}(,[A-Z]{2}){0,20}$"],
    ["^$|^[A-Z]{3}$"],
    ["^\\p{L}+$"],
    ['^[^<>:"/\\\\|?*]+$'],
    ["^\\u{1F600}?[\\u0020-\\u007e]*$"],
    ["^.*\\.json$"],
    ["\\.(pdf|docx?)$"],
    ["\\S"],
    ["\\d{3}-\\d{4}"],
    [""],
  ])("%s", (pattern) => {
    expect(triesFor(pattern)).toBeLessThanOrEqual(100);
  });
});

test("judging takes no more steps than allowed, whatever the expression", () => {
  const steps = { left: 500 };
  for (const pattern of ["^[a-z]{1,1000}$", "^(?:\\w{1,63}\\.){1,8}x$", "^.*x.*y.*z$"]) {
    expect(triesOf(pattern, steps)).toBeUndefined();
  }
  expect(steps.left).toBeLessThanOrEqual(0);
  // No steps are left, not even for a harmless expression.
  expect(triesOf("^a$", steps)).toBeUndefined();
});

/** An expression over two letters, with much overlap. */
const expression: fc.Arbitrary<string> = fc.letrec<{ node: string }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.constantFrom("a", "b", "[ab]", ".", "^", "$", "\\b", "\\w", "[^a]"),
    fc
      .tuple(
        fc.constantFrom("a", "b", "[ab]", "."),
        fc.constantFrom("*", "+", "?", "*?", "{2}", "{1,3}", "{2,}"),
      )
      .map(([atom, many]) => atom + many),
    fc.array(tie("node"), { minLength: 1, maxLength: 4 }).map((parts) => parts.join("")),
    fc.array(tie("node"), { minLength: 2, maxLength: 3 }).map((parts) => `(?:${parts.join("|")})`),
    fc
      .tuple(tie("node"), fc.constantFrom("?", "{2}", "{0,2}", ""))
      .map(([inner, many]) => `(${inner})${many}`),
  ),
})).node;

test("a backtracking matcher never needs more tries per character, whatever the expression and text", () => {
  let judged = 0;
  fc.assert(
    fc.property(expression, fc.stringMatching(/^[ab!]{0,40}$/), (pattern, text) => {
      const tries = triesFor(pattern);
      if (tries === undefined) return;
      judged += 1;
      expect(countTries(pattern, text)).toBeLessThanOrEqual(tries * (text.length + 1));
    }),
    { numRuns: 3_000 },
  );
  expect(judged).toBeGreaterThan(1_000);
});

/**
 * A backtracking matcher, as simple as possible, that fails at the very end, so it tries everything.
 * @returns how often it looked at a character or reached the end
 */
function countTries(pattern: string, text: string): number {
  let tries = 0;
  let at = 0;
  type Go = (index: number, next: (index: number) => boolean) => boolean;

  function choice(): Go {
    const branches = [sequence()];
    while (pattern[at] === "|") {
      at += 1;
      branches.push(sequence());
    }
    return (index, next) => branches.some((branch) => branch(index, next));
  }

  function sequence(): Go {
    let whole: Go = (index, next) => next(index);
    while (at < pattern.length && pattern[at] !== "|" && pattern[at] !== ")") {
      const before = whole;
      const part = repeated(atom());
      whole = (index, next) => before(index, (middle) => part(middle, next));
    }
    return whole;
  }

  function repeated(inner: Go): Go {
    const [all = "", sign = "", least = "", comma, most = ""] =
      /^(?:([*+?])|\{(\d+)(,)?(\d*)\})\??/.exec(pattern.slice(at)) ?? [];
    if (all === "") return inner;
    at += all.length;
    const low = sign === "" ? Number(least) : sign === "+" ? 1 : 0;
    const endless = sign === "*" || sign === "+" || (comma !== undefined && most === "");
    const high = endless
      ? Number.POSITIVE_INFINITY
      : sign === "?"
        ? 1
        : comma === undefined
          ? low
          : Number(most);
    const turn =
      (count: number): Go =>
      (index, next) => {
        if (count < high) {
          const again = inner(index, (after) =>
            after === index && count >= low ? false : turn(count + 1)(after, next),
          );
          if (again) return true;
        }
        return count >= low && next(index);
      };
    return turn(0);
  }

  function atom(): Go {
    const [all = ""] = /^(?:\(\?:|\(|\\.|\[\^?\w+\]|.)/.exec(pattern.slice(at)) ?? [];
    at += all.length;
    if (all.startsWith("(")) {
      const inner = choice();
      at += 1;
      return inner;
    }
    if (all === "^") return (index, next) => index === 0 && next(index);
    if (all === "$" || all === "\\b")
      return (index, next) => new RegExp(`(?<=^.{${index}})${all}`, "u").test(text) && next(index);
    const fits = new RegExp(`^${all}$`, "u");
    return (index, next) => {
      tries += 1;
      const character = text[index];
      return character !== undefined && fits.test(character) && next(index + 1);
    };
  }

  const whole = choice();
  for (let start = 0; start <= text.length; start += 1) {
    whole(start, () => {
      tries += 1;
      return false;
    });
  }
  return tries;
}
