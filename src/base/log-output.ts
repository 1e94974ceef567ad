/** The part of a stream that lines are written to. */
export interface LineStream {
  /** `done` is called once the line has been handed to the system, or cannot be. */
  write(line: string, done: () => void): unknown;
}

/** Maximum number of characters waiting for a stalled reader. A line has a few hundred. */
const WAITING_LIMIT = 4 * 1024 * 1024;

/**
 * Writes lines to a stream whose reader may stall, such as a hanging log collector. Beyond a limit, lines are
 * dropped, and their number is reported when the reader continues. Without this, the stream would keep all of them in
 * memory.
 */
export class LogOutput {
  readonly #stream: LineStream;
  readonly #limit: number;
  readonly #leftOut: (count: number) => string;
  #waiting = 0;
  #lost = 0;

  /** `leftOut` formats the line that reports how many lines were dropped. */
  constructor(stream: LineStream, leftOut: (count: number) => string, limit = WAITING_LIMIT) {
    this.#stream = stream;
    this.#leftOut = leftOut;
    this.#limit = limit;
  }

  write(line: string): void {
    if (this.#waiting > this.#limit) {
      this.#lost += 1;
      return;
    }
    this.#waiting += line.length;
    this.#stream.write(line, () => {
      this.#waiting -= line.length;
      if (this.#lost > 0 && this.#waiting <= this.#limit / 2) this.#reportLost();
    });
  }

  #reportLost(): void {
    const line = this.#leftOut(this.#lost);
    this.#lost = 0;
    this.write(line);
  }
}
