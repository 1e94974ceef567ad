/** Upper bounds of the latency classes in milliseconds, inclusive. Values above the last bound form another class. */
export const LATENCY_BOUNDS_MS: readonly number[] = [
  5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 3_600_000,
];

/** Replaces a class when nothing was measured: the call was refused or cancelled, or its process died. */
export const NOT_MEASURED = -1;

/** The class of a latency, as an index. `NOT_MEASURED` if `ms` is null. */
export function latencyClass(ms: number | null): number {
  if (ms === null) return NOT_MEASURED;
  const index = LATENCY_BOUNDS_MS.findIndex((bound) => ms <= bound);
  return index < 0 ? LATENCY_BOUNDS_MS.length : index;
}

/**
 * A percentile of latencies counted by class, in milliseconds. Interpolates linearly inside the class, as Prometheus'
 * `histogram_quantile` does. In the last class, which has no upper bound, returns the lower one.
 * @param counts by class; trailing zeros may be left out
 * @returns null if nothing was counted
 */
export function percentile(counts: readonly number[], percent: number): number | null {
  const total = counts.reduce((all, count) => all + count, 0);
  if (total === 0) return null;
  // Integers: `0.99 * 300` is slightly less than 297.
  const rank = percent * total;
  let before = 0;
  for (const [index, count] of counts.entries()) {
    if (count > 0 && (before + count) * 100 >= rank) {
      const lower = LATENCY_BOUNDS_MS[index - 1] ?? 0;
      const upper = LATENCY_BOUNDS_MS[index] ?? lower;
      return lower + ((upper - lower) * (rank - before * 100)) / (count * 100);
    }
    before += count;
  }
  throw new Error("the percentile is beyond all counts");
}
