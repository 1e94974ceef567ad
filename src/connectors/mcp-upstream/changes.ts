import type { Clock } from "../../base/clock.ts";

/** Servers that change many tools send a notification for each. */
const SETTLE_MS = 200;
/** An upstream that sends a notification at every listing would otherwise be listed in an endless loop. */
const LEAST_BETWEEN_MS = 5_000;
const MOST_BETWEEN_MS = 3_600_000;
/** Changes after which each wait is twice the previous one. */
const PATIENCE = 5;

/**
 * Combines many change notifications into one: reported 200 ms after the first, and at most every 5 s. If an upstream
 * keeps changing, the interval grows up to one hour, so that an endless loop cannot fill the ledger. After an hour
 * without a change, the interval is 5 s again.
 */
export class Changes {
  readonly #clock: Clock;
  readonly #tell: () => void;
  #told = Number.NEGATIVE_INFINITY;
  #times = 0;
  #cancel: (() => void) | undefined;
  #ended = false;

  constructor(clock: Clock, tell: () => void) {
    this.#clock = clock;
    this.#tell = tell;
  }

  noticed(): void {
    if (this.#cancel || this.#ended) return;
    const now = this.#clock.monotonic();
    if (now - this.#told > MOST_BETWEEN_MS) this.#times = 0;
    const between = Math.min(LEAST_BETWEEN_MS * 2 ** Math.max(0, this.#times - PATIENCE), MOST_BETWEEN_MS);
    this.#cancel = this.#clock.after(Math.max(SETTLE_MS, this.#told + between - now), () => {
      this.#cancel = undefined;
      this.#times += 1;
      this.#told = this.#clock.monotonic();
      this.#tell();
    });
  }

  end(): void {
    this.#ended = true;
    this.#cancel?.();
  }
}
