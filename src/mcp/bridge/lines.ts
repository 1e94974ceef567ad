const NEWLINE = 0x0a;

/** A line, or null for one that was longer than is kept. */
export type Line = string | null;

/** Cuts a stream of bytes into lines; one that is too long is skipped, and what comes after it is read on. */
export class LineReader {
  readonly #limit: number;
  #pieces: Uint8Array[] = [];
  #waiting = 0;

  /** @param limit bytes of a line that are kept, without its end */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** The lines that end in this chunk, in order, without their ends. */
  push(chunk: Uint8Array): Line[] {
    const lines: Line[] = [];
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      this.#hold(chunk.subarray(from, end));
      lines.push(this.#take());
      from = end + 1;
    }
    this.#hold(chunk.subarray(from));
    return lines;
  }

  /** What stands after the last end of a line; empty where nothing does. */
  rest(): Line {
    return this.#take();
  }

  #hold(piece: Uint8Array): void {
    this.#waiting += piece.length;
    if (this.#waiting > this.#limit) this.#pieces = [];
    else if (piece.length > 0) this.#pieces.push(piece);
  }

  #take(): Line {
    const line =
      this.#waiting > this.#limit ? null : Buffer.concat(this.#pieces, this.#waiting).toString("utf8");
    this.#pieces = [];
    this.#waiting = 0;
    return line;
  }
}
