import type { Clock } from "../../base/clock.ts";
import type { RandomSource } from "../../base/ids.ts";

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 30_000;
/** Number of consecutive calls without an answer that open the breaker. */
const LOSSES = 5;

/** Permission for one call, with which its outcome is reported. */
export interface Permit {
  /** Whether this is the single call that tests whether the upstream answers again. */
  readonly trial: boolean;
}

/**
 * A circuit breaker for one upstream. A failed connect, or five consecutive calls without an answer, open it: nothing
 * is tried for 250 ms, doubling up to 30 s. Half of each wait is random, so that many gateways do not return at once.
 * Then a connect is tried, and if calls had failed, a single call as well. It knows nothing of connections.
 */
export class Breaker {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #random: RandomSource;
  #failures = 0;
  #losses = 0;
  #openUntil = Number.NEGATIVE_INFINITY;
  /** Whether failed calls opened it. A successful connect then does not suffice to close it. */
  #proving = false;
  #trialOut = false;

  constructor(clock: Pick<Clock, "monotonic">, random: RandomSource) {
    this.#clock = clock;
    this.#random = random;
  }

  /** How many times in a row it has opened. */
  get failures(): number {
    return this.#failures;
  }

  /** Milliseconds until something may be tried; 0 if it may be now. */
  waitMs(): number {
    return Math.max(0, Math.ceil(this.#openUntil - this.#clock.monotonic()));
  }

  /**
   * Undefined while another call is being tried. Each permit MUST be returned by exactly one of the three reports
   * below.
   */
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

  /** The call got no answer, or its connection ended. @returns whether this opened the breaker */
  lost(permit: Permit): boolean {
    this.#end(permit);
    // Failures of concurrent calls count as one.
    if (this.waitMs() > 0) return false;
    this.#losses += 1;
    if (this.#proving ? !permit.trial : this.#losses < LOSSES) return false;
    this.#proving = true;
    this.#open();
    return true;
  }

  /** The call gives no information about the upstream: its caller abandoned it, or it was never made. */
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

  /** At least 0, less than 1. */
  #fraction(): number {
    const bytes = new Uint8Array(2);
    this.#random(bytes);
    return (((bytes[0] ?? 0) << 8) | (bytes[1] ?? 0)) / 0x10000;
  }
}
