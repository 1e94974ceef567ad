import type { Clock } from "../../base/clock.ts";

/** Allows a fixed number of events in each period, for events that an upstream may send without end. */
export class Allowance {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #most: number;
  readonly #spanMs: number;
  #began = Number.NEGATIVE_INFINITY;
  #taken = 0;

  constructor(clock: Pick<Clock, "monotonic">, most: number, spanMs: number) {
    this.#clock = clock;
    this.#most = most;
    this.#spanMs = spanMs;
  }

  take(): boolean {
    const now = this.#clock.monotonic();
    if (now - this.#began >= this.#spanMs) {
      this.#began = now;
      this.#taken = 0;
    }
    this.#taken += 1;
    return this.#taken <= this.#most;
  }
}
