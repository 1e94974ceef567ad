/** Maximum number of characters of the kept texts. */
const MOST_CHARACTERS = 16 * 1024 * 1024;

/** Values of rows, parsed from JSON. They are shared, so they MUST NOT be changed. */
export class KeptJson<Value extends object> {
  readonly #most: number;
  readonly #values = new Map<string, Value>();
  #characters = 0;

  constructor(mostCharacters = MOST_CHARACTERS) {
    this.#most = mostCharacters;
  }

  /**
   * Parses the text. The same text gives the same value, so what was derived from a list of globs need not be made
   * again when its row is read again. Emptied when full.
   */
  parse(text: string): Value {
    const known = this.#values.get(text);
    if (known) return known;
    const value = JSON.parse(text) as Value;
    if (this.#characters + text.length > this.#most) {
      this.#values.clear();
      this.#characters = 0;
    }
    this.#characters += text.length;
    this.#values.set(text, value);
    return value;
  }
}
