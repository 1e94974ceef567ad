/** A passage and how good it is. */
export interface Scored {
  readonly key: number;
  readonly score: number;
}

/** Better first; of equals the older key, so that the order is always the same. */
export function byScore(left: Scored, right: Scored): number {
  return right.score - left.score || left.key - right.key;
}

/** Keeps the `limit` best of whatever is offered, in a binary heap with the worst of them on top. */
export class Best {
  readonly #limit: number;
  readonly #heap: Scored[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** What scores no more than this is not taken any more. */
  get threshold(): number {
    return this.#heap.length < this.#limit ? Number.NEGATIVE_INFINITY : (this.#heap[0] as Scored).score;
  }

  offer(key: number, score: number): void {
    const heap = this.#heap;
    const item = { key, score };
    if (heap.length < this.#limit) {
      heap.push(item);
      this.#rise(heap.length - 1);
    } else if (byScore(item, heap[0] as Scored) < 0) {
      heap[0] = item;
      this.#sink();
    }
  }

  /** Best first. */
  sorted(): Scored[] {
    return this.#heap.toSorted(byScore);
  }

  #rise(from: number): void {
    const heap = this.#heap;
    let at = from;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (byScore(heap[at] as Scored, heap[parent] as Scored) <= 0) return;
      [heap[at], heap[parent]] = [heap[parent] as Scored, heap[at] as Scored];
      at = parent;
    }
  }

  #sink(): void {
    const heap = this.#heap;
    let at = 0;
    for (;;) {
      let worst = at;
      for (const child of [2 * at + 1, 2 * at + 2]) {
        if (child < heap.length && byScore(heap[child] as Scored, heap[worst] as Scored) > 0) worst = child;
      }
      if (worst === at) return;
      [heap[at], heap[worst]] = [heap[worst] as Scored, heap[at] as Scored];
      at = worst;
    }
  }
}
