import type { Clock } from "../base/clock.ts";
import { Problem } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { MOST_HOPS, type Via } from "../base/via.ts";

const WARN_MS = 60_000;

/**
 * Refuses requests that have passed this Gatehouse before: its own connectors and webhook, also by way of proxies or of other
 * Gatehouses. Such a refusal MUST NOT be recorded: an entry for each would keep the loop alive that it ends (a checkpoint's webhook
 * would write the next entry).
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

  /** The refusal of a request that has come this way; null for any other. */
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
      `This request has passed this Gatehouse before, or ${MOST_HOPS} others: a connector or a webhook leads back.`,
    );
  }
}
