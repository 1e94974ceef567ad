const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Round widths for the chart's bars, in milliseconds. */
const WIDTHS = [
  MINUTE,
  5 * MINUTE,
  15 * MINUTE,
  HOUR,
  3 * HOUR,
  6 * HOUR,
  DAY,
  7 * DAY,
  28 * DAY,
  91 * DAY,
  364 * DAY,
];
const MOST_BARS = 62;

/** Series counted over time, in the order of the legend. */
export const DECISION_SERIES = ["approve", "deny", "override", "stop", "resume", "other"] as const;
export const CALL_SERIES = ["model calls", "tool calls", "refused"] as const;

export type Series = (typeof DECISION_SERIES)[number] | (typeof CALL_SERIES)[number];

/** Counts in equal intervals of a period. */
export class Timeline {
  /** Start of the first interval, in milliseconds. */
  readonly start: number;
  /** Length of each interval, in milliseconds. */
  readonly width: number;
  readonly #parts: Map<Series, number>[];

  /** @param first, last Times of the first and last event, in milliseconds. */
  constructor(first: number, last: number) {
    const partsOf = (width: number) => Math.floor(last / width) - Math.floor(first / width) + 1;
    const widest = WIDTHS.at(-1) ?? DAY;
    this.width = WIDTHS.find((width) => partsOf(width) <= MOST_BARS) ?? widest;
    this.start = Math.floor(first / this.width) * this.width;
    this.#parts = Array.from(
      { length: Math.max(1, Math.min(MOST_BARS, partsOf(this.width))) },
      () => new Map(),
    );
  }

  get length(): number {
    return this.#parts.length;
  }

  count(series: Series, time: number): void {
    const place = Math.floor((time - this.start) / this.width);
    const part = this.#parts[Math.max(0, Math.min(this.#parts.length - 1, place))];
    part?.set(series, (part.get(series) ?? 0) + 1);
  }

  at(part: number, series: Series): number {
    return this.#parts[part]?.get(series) ?? 0;
  }

  total(series: Series): number {
    return this.#parts.reduce((sum, part) => sum + (part.get(series) ?? 0), 0);
  }
}
