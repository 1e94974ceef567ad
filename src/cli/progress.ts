const REDRAW_MS = 100;
const CLEAR = "\r\u001B[2K";

export interface Terminal {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/** How much of a step is done, on one line of standard error that is redrawn, if that is a terminal. */
export class ByteProgress {
  readonly #to: Terminal;
  readonly #now: () => number;
  #drawnAt = Number.NEGATIVE_INFINITY;
  #step = "";

  constructor(to: Terminal, now: () => number = () => performance.now()) {
    this.#to = to;
    this.#now = now;
  }

  /** @param step what is done, such as "packing the database". A new step is drawn at once */
  show(step: string, done: number, total: number): void {
    if (!this.#to.isTTY) return;
    if (step === this.#step && this.#now() - this.#drawnAt < REDRAW_MS) return;
    this.#step = step;
    this.#drawnAt = this.#now();
    const percent = total === 0 ? 100 : Math.floor((done / total) * 100);
    this.#to.write(`${CLEAR}${step}: ${percent} % of ${(total / 1e6).toFixed(1)} MB`);
  }

  end(): void {
    if (this.#step !== "") this.#to.write(CLEAR);
    this.#step = "";
  }
}
