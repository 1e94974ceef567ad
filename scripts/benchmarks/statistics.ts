/** Several measurements of one thing. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** Null where nothing was measured, or a measurement is missing (this machine does not show it). */
export function spread(values: readonly (number | null)[]): Spread | null {
  const known = values.filter((value) => value !== null).sort((a, b) => a - b);
  const min = known[0];
  const max = known.at(-1);
  if (known.length < values.length || min === undefined || max === undefined) return null;
  const upper = known[known.length >> 1] ?? max;
  const lower = known[(known.length - 1) >> 1] ?? min;
  return { median: (lower + upper) / 2, min, max };
}

/** What was measured side by side, in one round. */
export interface Pair<T> {
  readonly baseline: T;
  readonly gatehouse: T;
}

/** Combines two measurements, or is null where one of them is. */
export function combine(
  { baseline, gatehouse }: Pair<number | null>,
  how: (baseline: number, gatehouse: number) => number,
): number | null {
  return baseline === null || gatehouse === null ? null : how(baseline, gatehouse);
}

/** Numbers in the order they came, in memory taken once, so that adding one costs the measured loop nothing. */
export class Samples {
  readonly #values: Float64Array;
  #length = 0;
  #sorted = false;

  constructor(capacity: number) {
    this.#values = new Float64Array(capacity);
  }

  /** @returns false when there is no room left */
  add(value: number): boolean {
    if (this.#length === this.#values.length) return false;
    this.#values[this.#length++] = value;
    this.#sorted = false;
    return true;
  }

  /** The nearest rank, for example `percentile(99)`. Null when there are none. */
  percentile(percent: number): number | null {
    const values = this.#values.subarray(0, this.#length);
    if (!this.#sorted) values.sort();
    this.#sorted = true;
    return values[Math.max(0, Math.ceil((percent / 100) * values.length) - 1)] ?? null;
  }
}
