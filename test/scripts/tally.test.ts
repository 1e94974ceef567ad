import { describe, expect, test } from "bun:test";
import { isGood, summary, tallyTests, withoutSkips } from "../../scripts/lib/tally.ts";

const report = (tests: number, failures: number, skipped: number) =>
  `<?xml version="1.0"?>\n<testsuites name="bun test" tests="${tests}" assertions="9" failures="${failures}" skipped="${skipped}" time="0.1">\n</testsuites>`;

describe("the outcome of a bun test process", () => {
  test.each([
    ["all pass", 0, report(7, 0, 0), { passed: 7, failed: 0, skipped: 0 }],
    ["some fail", 1, report(7, 2, 1), { passed: 4, failed: 2, skipped: 1 }],
    ["a file cannot be imported", 1, report(7, 0, 0), { passed: 7, failed: 1, skipped: 0 }],
    ["killed by a signal", null, report(7, 0, 0), { passed: 7, failed: 1, skipped: 0 }],
    ["process.exit(0) in a test", 0, undefined, { passed: 0, failed: 1, skipped: 0 }],
    ["half a report", 0, '<?xml version="1.0"?>\n<testsui', { passed: 0, failed: 1, skipped: 0 }],
    ["a report without counts", 0, "<testsuites>", { passed: 0, failed: 1, skipped: 0 }],
    ["no test ran", 0, report(0, 0, 0), { passed: 0, failed: 1, skipped: 0 }],
  ])("%s", (_, exitCode, xml, expected) => {
    expect(tallyTests(exitCode, xml)).toEqual(expected);
  });
});

test("nothing run is not good, and a skip is a failure in CI", () => {
  expect(isGood({ passed: 0, failed: 0, skipped: 3 })).toBe(false);
  expect(isGood({ passed: 1, failed: 0, skipped: 3 })).toBe(true);
  expect(isGood(withoutSkips({ passed: 1, failed: 0, skipped: 3 }))).toBe(false);
});

test("the last line names skips only when there are any", () => {
  expect(summary({ passed: 4, failed: 0, skipped: 0 })).toBe("4 passed, 0 failed");
  expect(summary({ passed: 4, failed: 1, skipped: 2 })).toBe("4 passed, 1 failed, 2 skipped");
});
