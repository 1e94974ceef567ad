import type { Clock } from "../base/clock.ts";
import { Problem } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { MOST_HOPS, type Via } from "../base/via.ts";

const WARN_MS = 60_000;

/**
 * Refuses requests that have passed through this Gatehouse before: requests of its own connectors and webhook, even
 * through proxies or other Gatehouse instances. Such a refusal MUST NOT be recorded: each entry would keep the loop
 * going, since a checkpoint's webhook would cause the next entry.
 */
export class LoopGuard {
  readonly #instance: string;
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #log: Pick<Log, "warn">;
  #warned = Number.NEGATIVE_INFINITY;

  constructor(instance: string, clock: Pick<Clock, "monotonic">, log: Pick<Log, "warn">) {
    this.#instance = instance;
    this.#clock = clock;
    this.#log = log;
  }

  /** The refusal for a request that has passed through before; null for any other. */
  refusal(via: Via): Problem | null {
    if (via.length === 0 || (via.length < MOST_HOPS && !via.includes(this.#instance))) return null;
    const now = this.#clock.monotonic();
    if (now - this.#warned >= WARN_MS) {
      this.#warned = now;
      this.#log.warn("a connector or webhook leads back to this Gatehouse; its requests are refused", {
        via,
      });
    }
    return new Problem(
      "loop_detected",
      `This request has passed through this Gatehouse before, or through ${MOST_HOPS} others: a connector or webhook leads back to it.`,
    );
  }
}
