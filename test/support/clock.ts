import type { Clock } from "../../src/base/clock.ts";

/** A clock that moves only when told to, and runs everything that becomes due on the way. */
export class FakeClock implements Clock {
  #now: number;
  #monotonic = 0;
  #timers: { at: number; task: () => void }[] = [];

  constructor(now = Date.UTC(2026, 0, 2, 3, 4, 5)) {
    this.#now = now;
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  after(ms: number, task: () => void): () => void {
    const timer = { at: this.#monotonic + ms, task };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((each) => each !== timer);
    };
  }

  advance(ms: number): void {
    const end = this.#monotonic + ms;
    for (;;) {
      const due = this.#timers.filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at)[0];
      if (!due) break;
      this.#move(due.at - this.#monotonic);
      this.#timers = this.#timers.filter((each) => each !== due);
      due.task();
    }
    this.#move(end - this.#monotonic);
  }

  /** Moves at once, like the clock of a machine that was suspended. Then whatever has become due runs once. */
  suspend(ms: number): void {
    this.#move(ms);
    const due = this.#timers.filter((timer) => timer.at <= this.#monotonic).sort((a, b) => a.at - b.at);
    this.#timers = this.#timers.filter((timer) => !due.includes(timer));
    for (const { task } of due) task();
  }

  /** Sets only the wall clock, as an operator or a time server does. */
  setWall(now: number): void {
    this.#now = now;
  }

  #move(ms: number): void {
    this.#monotonic += ms;
    this.#now += ms;
  }
}
