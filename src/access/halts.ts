/** A stop that memory alone holds. */
export interface Halt {
  /** The store says by now what counts. Nothing where another halt came after this one: that one holds. */
  lift(): void;
}

/**
 * Stops that hold before they are written, and where they cannot be. One for each key at most, and only from a stop until
 * it is written.
 */
export class Halts<Key> {
  readonly #halts = new Map<Key, Halt>();
  readonly #changed: (key: Key) => void;

  constructor(changed: (key: Key) => void) {
    this.#changed = changed;
  }

  /** Keys that are held. */
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
