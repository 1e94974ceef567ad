const NEWLINE = 0x0a;

export class ProgramLineTooLong extends Error {
  override readonly name = "LineTooLong";
}

/** Splits a stream of bytes into lines. Incomplete lines are kept in pieces, so that each byte is copied once. */
export class LineSplitter {
  readonly #limit: number;
  #pieces: Uint8Array[] = [];
  #waiting = 0;

  /** @param limit bytes of one line, without its line break */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /**
   * Yields the lines that end in this chunk, without their `\n`. MUST be iterated to the end.
   * @throws LineTooLong if a line exceeds the limit; then nothing more may be pushed
   */
  *push(chunk: Uint8Array): Generator<string> {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      this.#hold(chunk.subarray(from, end));
      yield this.#take();
      from = end + 1;
    }
    if (from < chunk.length) this.#hold(chunk.subarray(from));
  }

  #hold(piece: Uint8Array): void {
    this.#waiting += piece.length;
    if (this.#waiting > this.#limit) {
      this.#pieces = [];
      throw new ProgramLineTooLong(`a line is longer than ${this.#limit} bytes`);
    }
    this.#pieces.push(piece);
  }

  #take(): string {
    const line = Buffer.concat(this.#pieces, this.#waiting).toString("utf8");
    this.#pieces = [];
    this.#waiting = 0;
    return line;
  }
}
