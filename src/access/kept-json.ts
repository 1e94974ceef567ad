/**
 * Maximum number of characters of the kept texts. With its value, a character takes up to 13 bytes of memory: a pattern
 * of two characters has 5 in a list. See `list-memory.ts`.
 */
const MOST_CHARACTERS = 1024 * 1024;
/** Number of characters that each text counts in addition, for its entry and its value. */
const ENTRY = 32;

/** Values of rows, parsed from JSON. They are shared, so they MUST NOT be changed. */
export class KeptJson<Value extends object> {
  readonly #half: number;
  #recent = new Map<string, Value>();
  /** Values move back to `#recent` when they are used. */
  #older = new Map<string, Value>();
  /** Characters of `#recent`. */
  #characters = 0;

  constructor(mostCharacters = MOST_CHARACTERS) {
    this.#half = mostCharacters / 2;
  }

  /**
   * Parses the text. The same text gives the same value, so what was derived from a list of globs need not be made
   * again when its row is read again. When new texts have taken half of the characters, those not used since the last
   * time are dropped.
   */
  parse(text: string): Value {
    const known = this.#recent.get(text);
    if (known) return known;
    const value = this.#older.get(text) ?? (JSON.parse(text) as Value);
    this.#recent.set(text, value);
    this.#characters += ENTRY + text.length;
    if (this.#characters > this.#half) {
      this.#older = this.#recent;
      this.#recent = new Map();
      this.#characters = 0;
    }
    return value;
  }
}
