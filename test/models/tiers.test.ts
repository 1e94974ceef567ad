import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { allowsModel, allowsTier, type TierPolicy } from "../../src/access/tier-policy.ts";
import { Problem } from "../../src/base/errors.ts";
import { Tiers } from "../../src/models/tiers.ts";

const MODELS = ["up/a", "up/b", "up/ab", "local/a", "local/a/b", "builtin/extractive"];
const model = fc.constantFrom(...MODELS);
const pattern = fc.oneof(
  model,
  fc.constantFrom("*", "**", "up/*", "*/a", "*a*", "local/*b", "*b", "u*a", "", "up/", "UP/A"),
);
const policy: fc.Arbitrary<TierPolicy> = fc.record({
  tiers: fc.option(fc.array(fc.integer({ min: 1, max: 5 })), { nil: null }),
  models: fc.record({
    allow: fc.array(pattern, { maxLength: 3 }),
    deny: fc.array(pattern, { maxLength: 3 }),
  }),
});
const routes = fc.dictionary(fc.constantFrom("1", "2", "3", "4"), fc.array(model, { minLength: 1 }), {
  minKeys: 1,
});

/** The same rule written differently: a glob as an anchored regular expression. */
function matches(glob: string, text: string, flags = ""): boolean {
  const source = glob.split("*").map((part) => part.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&"));
  return new RegExp(`^${source.join(".*")}$`, flags).test(text);
}

function allowed({ models }: TierPolicy, name: string): boolean {
  const own = name.slice(name.indexOf("/") + 1);
  // The empty text is not a pattern, and denies everything.
  const denied = (glob: string) =>
    glob === "" || matches(glob, name, "i") || (!glob.includes("/") && matches(glob, own, "i"));
  return models.allow.some((glob) => matches(glob, name)) && !models.deny.some(denied);
}

function tiersOf(given: Readonly<Record<string, readonly string[]>>): Tiers {
  const entries = Object.entries(given).map(([number, models]) => {
    return [Number(number), { tier: Number(number), name: `tier ${number}`, models }] as const;
  });
  return new Tiers(new Map(entries.reverse()), () => false);
}

function codeOf(work: () => unknown): string | undefined {
  try {
    work();
  } catch (error) {
    if (error instanceof Problem) return error.code;
    throw error;
  }
  return undefined;
}

test("a policy allows a name if it matches an allow glob and no deny glob", () => {
  fc.assert(
    fc.property(policy, model, (given, name) => {
      expect(allowsModel(given, name)).toBe(allowed(given, name));
    }),
    { numRuns: 1_000 },
  );
});

test("a route contains exactly what the policy allows, in the configured order", () => {
  fc.assert(
    fc.property(policy, routes, fc.integer({ min: 1, max: 5 }), (given, configured, tier) => {
      const tiers = tiersOf(configured);
      const models = configured[tier];
      const wanted = models?.filter((name) => allowed(given, name)) ?? [];
      const code = codeOf(() => expect(tiers.route(given, tier)).toEqual(wanted));
      if (models === undefined) expect(code).toBe("unknown_tier");
      else if (given.tiers !== null && !given.tiers.includes(tier)) expect(code).toBe("tier_forbidden");
      else expect(code).toBe(wanted.length === 0 ? "model_forbidden" : undefined);
    }),
    { numRuns: 1_000 },
  );
});

test("the lowest tier is the lowest that is both configured and allowed", () => {
  fc.assert(
    fc.property(policy, routes, (given, configured) => {
      const possible = Object.keys(configured)
        .map(Number)
        .filter((tier) => allowsTier(given, tier));
      const code = codeOf(() => expect(tiersOf(configured).lowest(given)).toBe(Math.min(...possible)));
      expect(code).toBe(possible.length === 0 ? "tier_forbidden" : undefined);
    }),
  );
});

describe("a denied model stays denied, whatever is allowed:", () => {
  test.each([
    [["*"], ["up/a"], "up/a", false],
    [["up/a"], ["*"], "up/a", false],
    [[], [], "up/a", false],
    [["up/*"], ["*/a"], "up/b", true],
    [["up/A"], [], "up/a", false],
    [["up"], [], "up/a", false],
  ])("allow %p, deny %p, %s: %p", (allow, deny, name, is) => {
    expect(allowsModel({ tiers: null, models: { allow, deny } }, name)).toBe(is);
  });
});

describe("a model in a tier that the policy does not allow", () => {
  const tiers = tiersOf({
    "1": ["aws/eu.amazon.nova-lite-v1:0"],
    "2": ["aws/us.anthropic.claude-5", "aws/amazon.nova-lite-v1:0"],
  });
  const allowed: TierPolicy = { tiers: [1], models: { allow: ["*"], deny: [] } };

  test.each([
    ["aws/us.anthropic.claude-5", false],
    ["aws/anthropic.claude-5", false],
    ["aws/global.anthropic.claude-5", false],
    ["aws/amazon.nova-lite-v1:0", false],
    ["aws/eu.amazon.nova-lite-v1:0", true],
    ["aws/anthropic.claude-6", true],
    ["other/anthropic.claude-5", true],
  ])("may not be called under another of Amazon's names either: %s, %p", (name, is) => {
    expect(tiers.allowsNamed(allowed, name)).toBe(is);
  });
});
