import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { toolNames } from "../../src/mcp/names.ts";

const shown = (names: readonly string[]) => {
  const made = toolNames(names);
  return names.map((name) => made.outward(name));
};

describe("a name over MCP", () => {
  test.each([
    ["github.search", "github__search"],
    ["github.search_issues", "github__search_issues"],
    ["vault.read", "vault__read"],
    ["agents.first-line", "agents__first_line"],
    ["github.pulls.list", "github__pulls_list"],
    ["time.now", "time__now"],
  ])("%s is %s", (name, expected) => {
    expect(shown([name])).toEqual([expected]);
  });

  test("that is too long ends with part of its hash", () => {
    const name = `github.${"x".repeat(100)}`;
    const [made = ""] = shown([name]);
    expect(made).toMatch(/^github__x{47}_[0-9a-f]{8}$/);
    expect(made).toHaveLength(64);
  });

  test("of 64 characters once made safe is kept, one more is not", () => {
    expect(shown([`a.${"x".repeat(61)}`])).toEqual([`a__${"x".repeat(61)}`]);
    expect(shown([`a.${"x".repeat(62)}`])[0]).toMatch(/_[0-9a-f]{8}$/);
  });
});

describe("of names that become equal when made safe", () => {
  test("the one that needs no change keeps its form", () => {
    const [dashed, clean, dotted] = shown(["up.get-it", "up.get_it", "up.get.it"]);
    expect(clean).toBe("up__get_it");
    expect(dashed).toMatch(/^up__get_it_[0-9a-f]{8}$/);
    expect(dotted).toMatch(/^up__get_it_[0-9a-f]{8}$/);
    expect(dashed).not.toBe(dotted);
  });

  test("each gets its hash if none is clean, in any order", () => {
    const names = ["up.get-it", "up.get.it"];
    const made = shown(names);
    expect(made.every((name) => /^up__get_it_[0-9a-f]{8}$/.test(name ?? ""))).toBe(true);
    expect(shown([...names].reverse())).toEqual([...made].reverse());
  });

  test("one named like another's hash does not replace it", () => {
    const [hashed = ""] = shown(["up.get-it", "up.get.it"]);
    const thief = hashed.replace("__", ".");
    const made = shown(["up.get-it", "up.get.it", thief]);
    expect(new Set(made).size).toBe(3);
    expect(made[2]).toBe(hashed);
  });
});

test("a dotted name and the shown name lead to the same tool; anything else to none", () => {
  const names = toolNames(["up.get-it", "up.get_it"]);
  expect(names.inward("up.get-it")).toBe("up.get-it");
  expect(names.inward("up__get_it")).toBe("up.get_it");
  expect(names.inward(names.outward("up.get-it") ?? "")).toBe("up.get-it");
  for (const other of ["up__get-it", "up.get", "", "UP__get_it", "__proto__", "constructor"]) {
    expect(names.inward(other)).toBeUndefined();
  }
  expect(names.outward("up.none")).toBeUndefined();
});

const connector = fc.constantFrom("a", "ab", "a_b", "github", "agents");
const character = fc.constantFrom("a", "b", "A", "0", "_", "-", ".");
const tool = fc.oneof(
  fc.string({ unit: character, minLength: 1, maxLength: 6 }),
  fc.string({ unit: character, minLength: 50, maxLength: 100 }),
);
const dotted = fc.tuple(connector, tool).map(([left, right]) => `${left}.${right}`);
const dottedNames = fc.uniqueArray(dotted, { maxLength: 40 });

describe("for any set of names", () => {
  test("shown names are safe, unique, at most 64 characters, and reversible", () => {
    fc.assert(
      fc.property(dottedNames, (names) => {
        const made = toolNames(names);
        const all = names.map((name) => made.outward(name) ?? "");
        for (const each of all) expect(each).toMatch(/^[A-Za-z0-9_]{1,64}$/);
        expect(new Set(all).size).toBe(names.length);
        expect(all.map((each) => made.inward(each))).toEqual([...names]);
      }),
      { numRuns: 500 },
    );
  });

  test("clean names that fit keep their form", () => {
    fc.assert(
      fc.property(dottedNames, (names) => {
        const made = toolNames(names);
        for (const name of names) {
          const own = name.replace(".", "__");
          if (/^\w+\.\w+$/.test(name) && own.length <= 64) expect(made.outward(name)).toBe(own);
        }
      }),
    );
  });

  test("names that collide with none of them change nothing", () => {
    const other = fc.uniqueArray(
      dotted.map((name) => `other_${name}`),
      { maxLength: 20 },
    );
    fc.assert(
      fc.property(dottedNames, other, (names, more) => {
        const before = toolNames(names);
        const after = toolNames([...more, ...names]);
        for (const name of names) expect(after.outward(name)).toBe(before.outward(name));
      }),
    );
  });
});
