import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  covers,
  isInside,
  MEMORY_SCOPE,
  MEMORY_SCOPE_LENGTH,
  narrow,
  simplify,
} from "../../src/access/memory-scope.ts";
import { isBelow, isInsideOf, scopePath, scopePaths } from "../vault/boundary/support.ts";

const FORM = new RegExp(MEMORY_SCOPE);
const isPath = (text: string) => FORM.test(text) && text.length <= MEMORY_SCOPE_LENGTH;

describe("the form of a scope", () => {
  test.each([
    ["nothing", ""],
    ["two slashes", "//"],
    ["a slash at the start", "/support"],
    ["a trailing slash", "support/"],
    ["an empty segment", "a//b"],
    ["a step up", "a/../b"],
    ["a step nowhere", "a/./b"],
    ["a dot at the start", ".a"],
    ["a capital", "Support"],
    ["white space", "a b"],
    ["a line break at the end", "support\n"],
    ["a line break at the start", "\nsupport"],
    ["two lines, one of them a path", "support\nLEGAL"],
    ["a line separator", "support\u2028"],
    ["a Cyrillic letter", "supp\u043ert"],
    ["a full-width letter", "\uff53upport"],
    ["zero width", "sup\u200bport"],
    ["NUL", "support\0"],
    ["a backslash", "a\\b"],
    ["a percent sign", "%2e%2e"],
    ["a wildcard", "support*"],
    ["a quote", "support'"],
    ["17 segments", Array(17).fill("a").join("/")],
  ])("%s is refused", (_, path) => {
    expect(isPath(path)).toBe(false);
  });

  test.each([
    "/",
    "a",
    "0",
    "support",
    "legal/contracts",
    "a.b",
    "a-b_c.d",
    "a..b",
    Array(16).fill("a").join("/"),
  ])("%s is accepted", (path) => {
    expect(isPath(path)).toBe(true);
  });

  test("an accepted path has only one spelling: no two paths name the same scope", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom("a", "b", "/", ".", "-", "A", "0"), maxLength: 9 }),
        (text) => {
          if (!isPath(text) || text === "/") return;
          const segments = text.split("/");
          expect(segments.every((segment) => segment !== "" && segment !== "." && segment !== "..")).toBe(
            true,
          );
          expect(new URL(`http://x/${text}`).pathname).toBe(`/${text}`);
        },
      ),
      { numRuns: 2_000 },
    );
  });
});

describe("covers and isInside", () => {
  test("agree with a comparison segment by segment", () => {
    fc.assert(
      fc.property(scopePath, scopePath, (scope, path) => {
        expect(covers(scope, path)).toBe(isBelow(path, scope));
      }),
      { numRuns: 5_000 },
    );
    fc.assert(
      fc.property(scopePaths, scopePath, (boundary, path) => {
        expect(isInside(boundary, path)).toBe(isInsideOf(boundary, path));
      }),
    );
  });

  test.each([
    ["support", "supportx", false],
    ["support", "support-a", false],
    ["support", "support.a", false],
    ["support", "support0", false],
    ["support", "suppor", false],
    ["support", "support/a", true],
    ["support/a", "support", false],
    ["support", "/", false],
    ["/", "support", true],
    ["/", "/", true],
  ])("%s covers %s: %p", (scope, path, expected) => {
    expect(covers(scope, path)).toBe(expected);
  });

  test("an empty boundary contains nothing", () => {
    fc.assert(fc.property(scopePath, (path) => expect(isInside([], path)).toBe(false)));
  });
});

describe("narrow and simplify", () => {
  test("a narrowed boundary contains what both contain, and nothing else", () => {
    fc.assert(
      fc.property(scopePaths, scopePaths, scopePath, (held, wanted, path) => {
        const both = isInsideOf(held, path) && isInsideOf(wanted, path);
        expect(isInside(narrow(held, wanted), path)).toBe(both);
      }),
      { numRuns: 3_000 },
    );
  });

  test("narrowing twice has the same result as narrowing once, in either order", () => {
    const sorted = (boundary: readonly string[]) => boundary.toSorted();
    fc.assert(
      fc.property(scopePaths, scopePaths, (held, wanted) => {
        const once = narrow(held, wanted);
        expect(sorted(narrow(once, wanted))).toEqual(sorted(once));
        expect(sorted(narrow(wanted, held))).toEqual(sorted(once));
        expect(narrow([], wanted)).toEqual([]);
        expect(narrow(held, [])).toEqual([]);
      }),
    );
  });

  test("a simplified boundary contains the same, without paths that another path covers", () => {
    fc.assert(
      fc.property(fc.array(scopePath, { maxLength: 8 }), scopePath, (boundary, path) => {
        const simple = simplify(boundary);
        expect(isInside(simple, path)).toBe(isInsideOf(boundary, path));
        for (const one of simple) {
          for (const other of simple) expect(one !== other && isBelow(one, other)).toBe(false);
        }
        expect(new Set(simple).size).toBe(simple.length);
      }),
    );
  });
});
