import type { Clock } from "../../base/clock.ts";

/** Servers that change many tools say so for each. */
const SETTLE_MS = 200;
/** An upstream that says so at every listing would be asked without end. */
const LEAST_BETWEEN_MS = 5_000;
const MOST_BETWEEN_MS = 3_600_000;
/** Changes after which each one is waited for twice as long as the one before. */
const PATIENCE = 5;

/**
 * Tells once of many changes: 200 ms after the first, and not more often than every 5 s. An upstream that goes on changing is asked
 * less and less often, down to once an hour, so that a loop which nothing else ends cannot fill the ledger. After an hour without a
 * change it starts again from 5 s.
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
