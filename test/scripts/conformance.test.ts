import { describe, expect, test } from "bun:test";
import { type Check, type Scenario, tallyScenarios } from "../../scripts/lib/conformance/outcome.ts";

function scenario(...statuses: Check["status"][]): Scenario {
  return { name: "tools-list", checks: statuses.map((status) => ({ id: "check", status })) };
}

describe("the outcome of a run of the conformance suite", () => {
  test.each([
    ["no scenario was run", 0, [], { passed: 0, failed: 1 }],
    ["a scenario checked nothing", 0, [scenario()], { passed: 0, failed: 1 }],
    [
      "one failed check among others",
      1,
      [scenario("SUCCESS", "FAILURE"), scenario("SUCCESS")],
      { passed: 1, failed: 1 },
    ],
    ["a scenario that could not be run", 1, [scenario("SUCCESS")], { passed: 1, failed: 1 }],
    ["killed by a signal", null, [scenario("SUCCESS")], { passed: 1, failed: 1 }],
    [
      "a check that is only recommended",
      0,
      [scenario("WARNING", "INFO", "SKIPPED")],
      { passed: 1, failed: 0 },
    ],
    ["all pass", 0, [scenario("SUCCESS"), scenario("SUCCESS")], { passed: 2, failed: 0 }],
  ])("%s", (_, exitCode, scenarios, expected) => {
    expect(tallyScenarios(exitCode, scenarios)).toEqual({ ...expected, skipped: 0 });
  });
});
