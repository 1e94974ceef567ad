const NEWLINE = 0x0a;

/** A line, or null if it was longer than the limit. */
export type InputLine = string | null;

/** Splits a stream of bytes into lines. Skips a line that is too long and continues with the next. */
export class LineReader {
  readonly #limit: number;
  #pieces: Uint8Array[] = [];
  #waiting = 0;

  /** @param limit maximum bytes of a line, without its line break */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** The lines that end in this chunk, in order, without their line breaks. */
  push(chunk: Uint8Array): InputLine[] {
    const lines: InputLine[] = [];
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      this.#hold(chunk.subarray(from, end));
      lines.push(this.#take());
      from = end + 1;
    }
    this.#hold(chunk.subarray(from));
    return lines;
  }

  /** The text after the last line break; empty if there is none. */
  rest(): InputLine {
    return this.#take();
  }

  #hold(piece: Uint8Array): void {
    this.#waiting += piece.length;
    if (this.#waiting > this.#limit) this.#pieces = [];
    else if (piece.length > 0) this.#pieces.push(piece);
  }

  #take(): InputLine {
    const line =
      this.#waiting > this.#limit ? null : Buffer.concat(this.#pieces, this.#waiting).toString("utf8");
    this.#pieces = [];
    this.#waiting = 0;
    return line;
  }
}
