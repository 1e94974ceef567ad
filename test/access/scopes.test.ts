import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { firstNotHeld, hasScope, isScope, mayUseTool } from "../../src/access/scopes.ts";
import { matchesAny } from "../../src/base/glob.ts";

describe("not a scope", () => {
  test.each([
    "",
    " ",
    "*",
    "admin ",
    "Admin",
    "tasks",
    "tasks:",
    "tasks:*",
    "tools",
    "tools:",
    "TOOLS:*",
    "tools:a b",
  ])("%j", (text) => expect(isScope(text)).toBe(false));
});

test("a scope is granted by itself or by admin, never by another scope", () => {
  expect(hasScope([], "tasks:read")).toBe(false);
  expect(hasScope(["tasks:write", "tools:*"], "tasks:read")).toBe(false);
  expect(hasScope(["tasks:read"], "tasks:read")).toBe(true);
  expect(hasScope(["admin"], "tasks:read")).toBe(true);
  expect(hasScope(["tasks:read"], "admin")).toBe(false);
});

test("a glob that was granted reaches no tool beyond those of the globs held", () => {
  const pattern = fc.stringMatching(/^[ab.*?]{1,6}$/);
  const held = fc.array(pattern, { maxLength: 3 });
  fc.assert(
    fc.property(held, pattern, fc.stringMatching(/^[ab.]{0,6}$/), (globs, wanted, tool) => {
      const scopes = globs.map((each) => `tools:${each}`);
      if (firstNotHeld(scopes, [`tools:${wanted}`]) !== undefined || !matchesAny([wanted], tool)) return;
      expect(mayUseTool(scopes, tool)).toBe(true);
    }),
    { numRuns: 20_000 },
  );
});
