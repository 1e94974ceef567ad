/** What the fake upstream says, for the upstream and for the checks of what arrived. */

/** The fake upstream's models, by name. */
export const MODELS = {
  /** `CHUNKS` chunks, all written at once. */
  plain: "plain",
  /** `SHORT_CHUNKS` chunks, all written at once. */
  short: "short",
  /** The chunks of `plain`, `PACE_MS` apart. */
  paced: "paced",
  /** The same after `LATE_WAIT_MS`, in which the readers arrive. */
  late: "late",
  /** `PASSED_CHUNKS` chunks, all written at once. */
  passed: "passed",
  /** The same chunks, each in a separate write, as fast as they can be written. */
  apart: "apart",
  /** `BURST_CHUNKS` chunks, all at once, after `BURST_WAIT_MS` in which the readers arrive. */
  burst: "burst",
  /** `STEADY_CHUNKS` chunks, `PACE_MS` apart, for about ten seconds. */
  steady: "steady",
  /** Never answers. */
  hang: "hang",
  /** `LONG_CHUNKS` chunks of `LONG_CHARACTERS` each, `LONG_PACE_MS` apart, for about twenty seconds. */
  long: "long",
} as const;

export const CHUNKS = 50;
export const SHORT_CHUNKS = 8;
export const PASSED_CHUNKS = 200;
export const PACE_MS = 5;
export const LATE_WAIT_MS = 200;
export const STEADY_CHUNKS = 2_000;
export const BURST_CHUNKS = 5_000;
export const BURST_WAIT_MS = 500;

export const LONG_CHUNKS = 200;
export const LONG_CHARACTERS = 500;
export const LONG_PACE_MS = 100;

export function chunk(index: number): string {
  return `word-${String(index).padStart(4, "0")} `;
}

export function chunks(count: number): string[] {
  return Array.from({ length: count }, (_, index) => chunk(index));
}
