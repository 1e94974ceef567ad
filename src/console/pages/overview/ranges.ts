/** Periods and steps of the charts. Their keys are used in addresses. */
export const RANGES = {
  "1h": { name: "1 hour", step: "5m", slots: 12, stepMs: 300_000 },
  "24h": { name: "24 hours", step: "1h", slots: 24, stepMs: 3_600_000 },
  "7d": { name: "7 days", step: "1h", slots: 168, stepMs: 3_600_000 },
  "30d": { name: "30 days", step: "1d", slots: 30, stepMs: 86_400_000 },
} as const;

export type RangeName = keyof typeof RANGES;

/** @returns the range that an address names; one day if it names none */
export function rangeNamed(name: string | undefined): RangeName {
  return name !== undefined && Object.hasOwn(RANGES, name) ? (name as RangeName) : "24h";
}

/** Start of the period, including the current slot; RFC 3339. */
export function beginningOf(range: RangeName, now: number): string {
  const { slots, stepMs } = RANGES[range];
  return new Date(now - (slots - 1) * stepMs).toISOString();
}
