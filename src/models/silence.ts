import type { Clock } from "../base/clock.ts";

/**
 * One timer for a whole stream. Each part only records its time of arrival, since setting a timer for each part costs
 * more.
 */
export class SilenceTimer {
  readonly #controller = new AbortController();
  readonly #timeoutMs: number;
  readonly #clock: Clock;
  #since = 0;
  #paused = false;
  #cancel = () => {};

  constructor(timeoutMs: number, clock: Clock) {
    this.#timeoutMs = timeoutMs;
    this.#clock = clock;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Starts counting. The promise only ever rejects, with the TimeoutError. */
  begin(): Promise<never> {
    this.resume();
    this.#arm(this.#timeoutMs);
    return new Promise<never>((_, reject) => {
      this.signal.addEventListener("abort", () => reject(this.signal.reason), { once: true });
    });
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    this.#since = this.#clock.monotonic();
  }

  end(): void {
    this.#cancel();
  }

  /** A provider responds to an abort with its own error. If the cause was silence, the TimeoutError replaces it. */
  reason(error: unknown): unknown {
    return this.signal.aborted ? this.signal.reason : error;
  }

  #arm(ms: number): void {
    this.#cancel = this.#clock.after(ms, () => {
      const left = this.#paused ? this.#timeoutMs : this.#since + this.#timeoutMs - this.#clock.monotonic();
      if (left > 0) this.#arm(left);
      else
        this.#controller.abort(new DOMException(`nothing arrived for ${this.#timeoutMs} ms`, "TimeoutError"));
    });
  }
}
