/** The part of a stream that lines are written to. */
export interface LineStream {
  /** `done` is called when the line has been handed to the system, or cannot be. */
  write(line: string, done: () => void): unknown;
}

/** Characters that wait for a reader that takes nothing. A line has some hundred. */
const WAITING_LIMIT = 4 * 1024 * 1024;

/**
 * Writes lines to a stream whose reader may stand still, such as a log collector that hangs: past a cap lines are left out,
 * and a line says how many when the reader goes on. Without it, the stream keeps all of them in memory.
 */
export class LogOutput {
  readonly #stream: LineStream;
  readonly #limit: number;
  readonly #leftOut: (count: number) => string;
  #waiting = 0;
  #lost = 0;

  /** `leftOut` makes the line that says how many were left out. */
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
