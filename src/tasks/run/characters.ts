/**
 * Joins surrogate pairs that a model sent in two deltas: JSON readers of many languages refuse half of one. What has no
 * other half becomes U+FFFD, as the store writes it, so that the deltas and the output stay the same text.
 */
export class WholeCharacters {
  #half = "";

  /** The text as far as its characters are whole; empty when there is none yet. */
  take(delta: string): string {
    const text = this.#half + delta;
    const last = text.charCodeAt(text.length - 1);
    const end = last >= 0xd800 && last < 0xdc00 ? text.length - 1 : text.length;
    this.#half = text.slice(end);
    return text.slice(0, end).toWellFormed();
  }

  /** What was held back, once nothing more comes. */
  rest(): string {
    const rest = this.#half.toWellFormed();
    this.#half = "";
    return rest;
  }
}
