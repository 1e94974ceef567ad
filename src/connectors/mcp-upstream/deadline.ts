import type { Clock } from "../../base/clock.ts";

/** Which limit expired: too long without a sign of life, or too long in total. */
export type RequestDeadline = "silence" | "total";

/** Calls `expire` once, after `silenceMs` without a sign of life or after `totalMs` in total. Never after `end`. */
export class Deadline {
  readonly #clock: Clock;
  readonly #silenceMs: number;
  readonly #end: number;
  readonly #expire: (expiry: RequestDeadline) => void;
  #since: number;
  #cancel = () => {};

  constructor(
    clock: Clock,
    limits: { readonly silenceMs: number; readonly totalMs: number },
    expire: (expiry: RequestDeadline) => void,
  ) {
    this.#clock = clock;
    this.#silenceMs = limits.silenceMs;
    this.#expire = expire;
    this.#since = clock.monotonic();
    this.#end = this.#since + limits.totalMs;
    this.#arm();
  }

  /** Records a sign of life. Only notes the time, since signs may come thousands of times per second. */
  heard(): void {
    this.#since = this.#clock.monotonic();
  }

  end(): void {
    this.#cancel();
  }

  #arm(): void {
    const now = this.#clock.monotonic();
    const silence = this.#since + this.#silenceMs - now;
    const total = this.#end - now;
    if (total <= 0) this.#expire("total");
    else if (silence <= 0) this.#expire("silence");
    else this.#cancel = this.#clock.after(Math.min(silence, total), () => this.#arm());
  }
}
