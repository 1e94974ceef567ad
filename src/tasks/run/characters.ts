/**
 * Joins surrogate pairs that a model split between two deltas, since JSON readers in many languages reject half a
 * pair. A half without its counterpart becomes U+FFFD, as it does in the store, so that the deltas and the output are
 * the same text.
 */
export class WholeCharacters {
  #half = "";

  /** The text up to its last whole character; empty if there is none yet. */
  take(delta: string): string {
    const text = this.#half + delta;
    const last = text.charCodeAt(text.length - 1);
    const end = last >= 0xd800 && last < 0xdc00 ? text.length - 1 : text.length;
    this.#half = text.slice(end);
    return text.slice(0, end).toWellFormed();
  }

  /** Returns the text held back, once nothing more arrives. */
  rest(): string {
    const rest = this.#half.toWellFormed();
    this.#half = "";
    return rest;
  }
}
