/**
 * Maximum number of keys that may wait for one reader. Beyond that, reading all lists again is cheaper than so many
 * updates.
 */
const WAITING_LIMIT = 2_000;

export type Mark = "feed.open" | "feed.reset";

/** What a reader gets next: whether to read everything again, and the updates after that. */
export interface QueueBatch {
  readonly mark: Mark | null;
  readonly texts: readonly string[];
}

/**
 * Updates waiting for one reader: the latest text of each key. Bounded, however slow the reader is. A reader that
 * applies all updates by key has the latest text of each key, unless it is told to read everything again.
 */
export class ConflatingQueue {
  readonly #limit: number;
  readonly #waiting = new Map<string, string>();
  #mark: Mark | null = "feed.open";

  constructor(limit = WAITING_LIMIT) {
    this.#limit = limit;
  }

  get size(): number {
    return this.#waiting.size;
  }

  get isEmpty(): boolean {
    return this.#mark === null && this.#waiting.size === 0;
  }

  /** A waiting key keeps its place, so frequent changes do not postpone it forever. */
  put(key: string, text: string): void {
    if (this.#waiting.size >= this.#limit && !this.#waiting.has(key)) this.reset();
    else this.#waiting.set(key, text);
  }

  /** Discards everything waiting: the reader will read everything again. */
  reset(): void {
    this.#waiting.clear();
    this.#mark ??= "feed.reset";
  }

  /** Takes the oldest updates, up to `units` UTF-16 code units, but at least one if there is one. */
  take(units: number): QueueBatch {
    const mark = this.#mark;
    this.#mark = null;
    const texts: string[] = [];
    let taken = 0;
    for (const [key, text] of this.#waiting) {
      taken += text.length;
      if (taken > units && texts.length > 0) break;
      texts.push(text);
      this.#waiting.delete(key);
    }
    return { mark, texts };
  }
}
