/** A stop that is enforced only in memory. */
export interface Halt {
  /**
   * Removes the halt once the store contains the stop. Does nothing if it was replaced by a later halt, which remains
   * in effect.
   */
  lift(): void;
}

/**
 * Stops that take effect before they are written, and even if they cannot be written. At most one per key, from a
 * stop until it is written.
 */
export class Halts<Key> {
  readonly #halts = new Map<Key, Halt>();
  readonly #changed: (key: Key) => void;

  constructor(changed: (key: Key) => void) {
    this.#changed = changed;
  }

  /** Number of halted keys. */
  get size(): number {
    return this.#halts.size;
  }

  has(key: Key): boolean {
    return this.#halts.size > 0 && this.#halts.has(key);
  }

  get(key: Key): Halt | undefined {
    return this.#halts.get(key);
  }

  halt(key: Key): Halt {
    const own: Halt = {
      lift: () => {
        if (this.#halts.get(key) !== own) return;
        this.#halts.delete(key);
        this.#changed(key);
      },
    };
    this.#halts.set(key, own);
    this.#changed(key);
    return own;
  }
}
