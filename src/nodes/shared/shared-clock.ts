import { type Clock, systemClock } from "../../base/clock.ts";

/** Smaller differences from the database's clock are not corrected, because a round trip takes as long. */
const TOLERANCE_MS = 100;

/**
 * The time of the database's server, so that nodes whose clocks differ agree when a token or an approval expires, and
 * the entries of a ledger have the times of one clock. Between corrections it follows the node's own clock.
 */
export class SharedClock implements Clock {
  readonly #own: Clock;
  #offset = 0;

  constructor(own: Clock = systemClock) {
    this.#own = own;
  }

  now(): number {
    return this.#own.now() + this.#offset;
  }

  monotonic(): number {
    return this.#own.monotonic();
  }

  after(ms: number, task: () => void): () => void {
    return this.#own.after(ms, task);
  }

  /** Takes over the database's time, which was read between two readings of `monotonic`. */
  correct(time: number, before: number, after: number): void {
    const elapsed = this.#own.monotonic() - (before + after) / 2;
    const offset = Math.round(time + elapsed - this.#own.now());
    const uncertainty = (after - before) / 2;
    if (Math.abs(offset - this.#offset) > Math.max(TOLERANCE_MS, uncertainty)) this.#offset = offset;
  }
}
