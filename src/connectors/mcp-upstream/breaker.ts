import type { Clock } from "../../base/clock.ts";
import type { RandomSource } from "../../base/ids.ts";

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 30_000;
/** Calls in a row that got no answer until the upstream is left alone. */
const LOSSES = 5;

/** How one call may go on, and how its outcome is reported. */
export interface Permit {
  /** It is the one call that shows whether the upstream answers again. */
  readonly trial: boolean;
}

/**
 * A circuit breaker for one upstream. A connect that failed, or five calls in a row without an answer, open it: nothing is
 * tried for 250 ms, doubling to 30 s, half of it at random, so that many gateways do not come back at once. Then a connect
 * is tried; where calls had failed, one call alone as well. Pure: it knows no connection.
 */
export class Breaker {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #random: RandomSource;
  #failures = 0;
  #losses = 0;
  #openUntil = Number.NEGATIVE_INFINITY;
  /** Opened by calls: that a connection can be made proves nothing. */
  #proving = false;
  #trialOut = false;

  constructor(clock: Pick<Clock, "monotonic">, random: RandomSource) {
    this.#clock = clock;
    this.#random = random;
  }

  /** How often in a row it was opened. */
  get failures(): number {
    return this.#failures;
  }

  /** Milliseconds for which nothing may be tried; 0 when something may. */
  waitMs(): number {
    return Math.max(0, Math.ceil(this.#openUntil - this.#clock.monotonic()));
  }

  /** Undefined while another call is the trial. Each permit is given back by exactly one of the three reports below. */
  enter(): Permit | undefined {
    if (!this.#proving) return { trial: false };
    if (this.#trialOut) return undefined;
    this.#trialOut = true;
    return { trial: true };
  }

  answered(permit: Permit): void {
    this.#end(permit);
    this.#losses = 0;
    this.#failures = 0;
    this.#proving = false;
    this.#openUntil = Number.NEGATIVE_INFINITY;
  }

  /** The call got no answer, or its connection ended. @returns whether the breaker opened by this */
  lost(permit: Permit): boolean {
    this.#end(permit);
    // Calls that were out together are one failure.
    if (this.waitMs() > 0) return false;
    this.#losses += 1;
    if (this.#proving ? !permit.trial : this.#losses < LOSSES) return false;
    this.#proving = true;
    this.#open();
    return true;
  }

  /** The call says nothing about the upstream: its caller gave up, or it was never made. */
  withdrawn(permit: Permit): void {
    this.#end(permit);
  }

  connected(): void {
    if (!this.#proving) this.#failures = 0;
  }

  connectFailed(): void {
    this.#open();
  }

  #end(permit: Permit): void {
    if (permit.trial) this.#trialOut = false;
  }

  #open(): void {
    const whole = Math.min(FIRST_WAIT_MS * 2 ** this.#failures, LONGEST_WAIT_MS);
    this.#failures += 1;
    this.#losses = 0;
    this.#openUntil = this.#clock.monotonic() + (whole / 2) * (1 + this.#fraction());
  }

  /** From 0 up to but without 1. */
  #fraction(): number {
    const bytes = new Uint8Array(2);
    this.#random(bytes);
    return (((bytes[0] ?? 0) << 8) | (bytes[1] ?? 0)) / 0x10000;
  }
}
