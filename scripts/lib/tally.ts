/** The number of checks with each outcome. */
export interface Tally {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export const NOTHING: Tally = { passed: 0, failed: 0, skipped: 0 };
export const ONE_PASSED: Tally = { passed: 1, failed: 0, skipped: 0 };
export const ONE_FAILED: Tally = { passed: 0, failed: 1, skipped: 0 };
export const ONE_SKIPPED: Tally = { passed: 0, failed: 0, skipped: 1 };

export function add(a: Tally, b: Tally): Tally {
  return { passed: a.passed + b.passed, failed: a.failed + b.failed, skipped: a.skipped + b.skipped };
}

/**
 * The outcome of one `bun test` process, from its exit code and its JUnit report.
 *
 * The report is missing if the process died, if a test called `process.exit` (the exit code may then be 0), or if no
 * test ran. Each of these counts as one failure. So does a non-zero exit code without a failed test, because a file
 * that cannot be imported is not in the report.
 */
export function tallyTests(exitCode: number | null, report: string | undefined): Tally {
  const head = report?.match(/<testsuites\b[^>]*>/)?.[0];
  if (head === undefined) return ONE_FAILED;
  const tests = attribute(head, "tests");
  const failures = attribute(head, "failures");
  const skipped = attribute(head, "skipped");
  if (tests === undefined || failures === undefined || skipped === undefined || tests === 0)
    return ONE_FAILED;
  const unreported = exitCode !== 0 && failures === 0 ? 1 : 0;
  return { passed: Math.max(0, tests - failures - skipped), failed: failures + unreported, skipped };
}

function attribute(tag: string, name: string): number | undefined {
  const digits = new RegExp(`\\s${name}="(\\d+)"`).exec(tag)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** CI skips nothing, so there a skipped check counts as failed. */
export function withoutSkips(tally: Tally): Tally {
  return { passed: tally.passed, failed: tally.failed + tally.skipped, skipped: 0 };
}

/** Whether the whole run succeeded: something ran, and nothing failed. */
export function isGood(tally: Tally): boolean {
  return tally.failed === 0 && tally.passed > 0;
}

/** The last line of `scripts/test`. */
export function summary(tally: Tally): string {
  const skipped = tally.skipped > 0 ? `, ${tally.skipped} skipped` : "";
  return `${tally.passed} passed, ${tally.failed} failed${skipped}`;
}
