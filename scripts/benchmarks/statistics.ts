/** Several measurements of the same thing. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** Null if nothing was measured, or if a measurement is missing because this machine does not provide it. */
export function spread(values: readonly (number | null)[]): Spread | null {
  const known = values.filter((value) => value !== null).sort((a, b) => a - b);
  const min = known[0];
  const max = known.at(-1);
  if (known.length < values.length || min === undefined || max === undefined) return null;
  const upper = known[known.length >> 1] ?? max;
  const lower = known[(known.length - 1) >> 1] ?? min;
  return { median: (lower + upper) / 2, min, max };
}

/** Two measurements made side by side in one round. */
export interface Pair<T> {
  readonly baseline: T;
  readonly gatehouse: T;
}

/** Combines two measurements. Null if either is. */
export function combine(
  { baseline, gatehouse }: Pair<number | null>,
  how: (baseline: number, gatehouse: number) => number,
): number | null {
  return baseline === null || gatehouse === null ? null : how(baseline, gatehouse);
}

/** Numbers in order of arrival, in preallocated memory, so that adding one costs the measured loop nothing. */
export class Samples {
  readonly #values: Float64Array;
  #length = 0;
  #sorted = false;

  constructor(capacity: number) {
    this.#values = new Float64Array(capacity);
  }

  /** @returns false if there is no room left */
  add(value: number): boolean {
    if (this.#length === this.#values.length) return false;
    this.#values[this.#length++] = value;
    this.#sorted = false;
    return true;
  }

  /** The percentile by nearest rank, such as `percentile(99)`. Null if there are no values. */
  percentile(percent: number): number | null {
    const values = this.#values.subarray(0, this.#length);
    if (!this.#sorted) values.sort();
    this.#sorted = true;
    return values[Math.max(0, Math.ceil((percent / 100) * values.length) - 1)] ?? null;
  }
}
