/** Patterns consist of ASCII characters only (see `isGlob`). */
const ALPHABET = 128;
const STAR = "*".charCodeAt(0);
const QUESTION_MARK = "?".charCodeAt(0);

/**
 * Finds parts that contain `?` in a text. Keeps one bit per character and position of the text, so a part is found in
 * one step per required character and 32 positions. Comparing it at each position could take length × length steps.
 */
export class TextPositions {
  #text: string | undefined;
  /** Number of words per character. */
  #width = 0;
  #hasStar = false;
  #bits = new Uint32Array();
  #starts = new Uint32Array();

  /** Sets the text that `find` searches. */
  read(text: string): void {
    if (this.#text === text) return;
    this.#text = text;
    // One word more than needed, so shifting a character's bits never reads those of the next character.
    this.#width = (text.length >>> 5) + 2;
    if (this.#starts.length < this.#width) {
      this.#bits = new Uint32Array(this.#width * ALPHABET);
      this.#starts = new Uint32Array(this.#width);
    } else {
      this.#bits.fill(0, 0, this.#width * ALPHABET);
    }
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code >= ALPHABET) continue;
      const word = code * this.#width + (at >>> 5);
      this.#bits[word] = (this.#bits[word] ?? 0) | (1 << (at & 31));
    }
    this.#hasStar = text.includes("*");
  }

  /** The first position at or after `from` where the part matches and ends by `end`; -1 if there is none. */
  find(part: string, from: number, end: number): number {
    const last = end - part.length;
    if (last < from) return -1;
    const first = from >>> 5;
    const final = last >>> 5;
    const starts = this.#starts;
    starts.fill(-1, first, final + 1);
    starts[first] = (starts[first] ?? 0) & (-1 << (from & 31));
    starts[final] = (starts[final] ?? 0) & (-1 >>> (31 - (last & 31)));
    for (let offset = 0; offset < part.length; offset++) {
      const code = part.charCodeAt(offset);
      if (code !== QUESTION_MARK && !this.#keep(code, offset, 0, first, final)) return -1;
    }
    // A star in the text comes from another pattern (`covers`) and represents any number of characters.
    for (let offset = 0; this.#hasStar && offset < part.length; offset++) {
      if (part.charCodeAt(offset) === QUESTION_MARK) this.#keep(STAR, offset, -1, first, final);
    }
    for (let word = first; word <= final; word++) {
      const found = starts[word] ?? 0;
      if (found !== 0) return word * 32 + 31 - Math.clz32(found & -found);
    }
    return -1;
  }

  /**
   * Keeps the starts whose character at this offset has this code or, with `inverted` -1, has another code.
   * @returns false if none is left
   */
  #keep(code: number, offset: number, inverted: 0 | -1, first: number, final: number): boolean {
    const row = code * this.#width + (offset >>> 5);
    const shift = offset & 31;
    const bits = this.#bits;
    const starts = this.#starts;
    let left = 0;
    for (let word = first; word <= final; word++) {
      const low = (bits[row + word] ?? 0) >>> shift;
      // Shifts by 32 do nothing, so this one takes two steps.
      const high = ((bits[row + word + 1] ?? 0) << 1) << (31 - shift);
      const kept = (starts[word] ?? 0) & ((low | high) ^ inverted);
      starts[word] = kept;
      left |= kept;
    }
    return left !== 0;
  }
}
