import type { Clock } from "../../base/clock.ts";

/** Servers that change many tools say so for each. */
const SETTLE_MS = 200;
/** An upstream that says so at every listing would be asked without end. */
const LEAST_BETWEEN_MS = 5_000;

/** Tells once of many changes: 200 ms after the first, and not more often than every 5 s. */
export class Changes {
  readonly #clock: Clock;
  readonly #tell: () => void;
  #told = Number.NEGATIVE_INFINITY;
  #cancel: (() => void) | undefined;
  #ended = false;

  constructor(clock: Clock, tell: () => void) {
    this.#clock = clock;
    this.#tell = tell;
  }

  noticed(): void {
    if (this.#cancel || this.#ended) return;
    const wait = Math.max(SETTLE_MS, this.#told + LEAST_BETWEEN_MS - this.#clock.monotonic());
    this.#cancel = this.#clock.after(wait, () => {
      this.#cancel = undefined;
      this.#told = this.#clock.monotonic();
      this.#tell();
    });
  }

  end(): void {
    this.#ended = true;
    this.#cancel?.();
  }
}
