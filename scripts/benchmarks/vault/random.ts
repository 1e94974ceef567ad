/** Pseudo-random numbers that are the same in every run, from a textual seed (mulberry32). */
export class Random {
  #state: number;

  constructor(seed: string) {
    this.#state = Bun.hash.xxHash32(seed);
  }

  /** From 0 to 1, excluding 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** An integer from 0 to `end`, excluding `end`. */
  below(end: number): number {
    return Math.floor(this.next() * end);
  }

  /** @throws Error if there is nothing to choose from */
  pick<T>(from: ArrayLike<T>): T {
    const picked = from[this.below(from.length)];
    if (picked === undefined) throw new Error("nothing to choose from");
    return picked;
  }
}
