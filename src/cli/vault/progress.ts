import { lineOf } from "./text.ts";

const EACH = 100;
const REDRAW_MS = 40;
const CLEAR = "\r\u001B[2K";

export interface Terminal {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

/** Progress on standard error: one updated line on a terminal, otherwise a line every hundred files. */
export class UploadProgress {
  readonly #total: number;
  readonly #to: Terminal;
  readonly #now: () => number;
  #drawnAt = Number.NEGATIVE_INFINITY;
  #isDrawn = false;

  constructor(total: number, to: Terminal, now: () => number) {
    this.#total = total;
    this.#to = to;
    this.#now = now;
  }

  /** `details` follows the numbers, such as "3 unchanged". */
  step(done: number, details: string, path: string): void {
    const head = `[${done}/${this.#total}]${details === "" ? "" : ` ${details}`}`;
    if (!this.#to.isTTY) {
      if (done % EACH === 0 && done < this.#total) this.#to.write(`${head}\n`);
      return;
    }
    if (this.#now() - this.#drawnAt < REDRAW_MS) return;
    this.#drawnAt = this.#now();
    this.#isDrawn = true;
    const room = (this.#to.columns || 80) - 1 - head.length - 2;
    this.#to.write(CLEAR + (room < 1 ? head : `${head}  ${lineOf(path, room)}`));
  }

  /** Prints a permanent line. */
  say(text: string): void {
    this.end();
    this.#to.write(`${text}\n`);
  }

  end(): void {
    if (this.#isDrawn) this.#to.write(CLEAR);
    this.#isDrawn = false;
    this.#drawnAt = Number.NEGATIVE_INFINITY;
  }
}
