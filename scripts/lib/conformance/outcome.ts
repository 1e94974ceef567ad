import { add, NOTHING, ONE_FAILED, ONE_PASSED, type Tally } from "../tally.ts";

/** One check within a scenario. A mere recommendation of the suite is a WARNING. */
export interface Check {
  readonly id: string;
  readonly status: "SUCCESS" | "FAILURE" | "WARNING" | "INFO" | "SKIPPED";
  readonly errorMessage?: string | undefined;
}

export interface Scenario {
  readonly name: string;
  readonly checks: readonly Check[];
}

/** A scenario without checks proves nothing. */
export function hasPassed({ checks }: Scenario): boolean {
  return checks.length > 0 && checks.every(({ status }) => status !== "FAILURE");
}

/**
 * The outcome of one run of the suite, counted per scenario. A non-zero exit code without a failed scenario counts as
 * one failure, because a scenario that could not be run leaves no result. So does a run without any scenario.
 */
export function tallyScenarios(exitCode: number | null, scenarios: readonly Scenario[]): Tally {
  const tally = scenarios
    .map((scenario) => (hasPassed(scenario) ? ONE_PASSED : ONE_FAILED))
    .reduce(add, NOTHING);
  const isUnreported = tally.failed === 0 && (exitCode !== 0 || scenarios.length === 0);
  return isUnreported ? add(tally, ONE_FAILED) : tally;
}
