/** Keys that may wait for one reader. Past that it reads its lists anew, which costs less than so many patches. */
const WAITING_LIMIT = 2_000;

export type Mark = "feed.open" | "feed.reset";

/** What comes next for a reader: that it is to read anew, and what is to be told after that. */
export interface Taken {
  readonly mark: Mark | null;
  readonly texts: readonly string[];
}

/**
 * What waits for one reader: the last text of each key. However slowly it is read, it holds no more than the limit, and what
 * was taken of it, laid over one another by key, ends in the last text of every key, or began anew with a mark after which
 * the reader reads everything for itself.
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

  /** A key that waits keeps its place: one that changes all the time is not put off for ever. */
  put(key: string, text: string): void {
    if (this.#waiting.size >= this.#limit && !this.#waiting.has(key)) this.reset();
    else this.#waiting.set(key, text);
  }

  /** Forgets what waits: the reader is told to read everything anew. */
  reset(): void {
    this.#waiting.clear();
    this.#mark ??= "feed.reset";
  }

  /** Takes what came first, up to so many UTF-16 units, and one text at least where there is one. */
  take(units: number): Taken {
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
