/** A passage and its score. */
export interface Scored {
  readonly key: number;
  readonly score: number;
}

/** With its index among all passages of the search's segments; -1 if unknown. */
export interface ScoredAt extends Scored {
  readonly at: number;
}

/** Orders better scores first, and equal ones by key, so that the order is deterministic. */
export function byScore(left: Scored, right: Scored): number {
  return right.score - left.score || left.key - right.key;
}

/**
 * Keeps the `limit` best items in a binary heap with the worst on top. Uses typed arrays: with objects, selecting
 * among 1,000 passages took as long as scoring them.
 */
export class TopK {
  readonly #keys: Float64Array;
  readonly #scores: Float64Array;
  readonly #places: Float64Array;
  #size = 0;

  constructor(limit: number) {
    this.#keys = new Float64Array(limit);
    this.#scores = new Float64Array(limit);
    this.#places = new Float64Array(limit);
  }

  /** Lower scores are no longer accepted. */
  get threshold(): number {
    return this.#size < this.#keys.length ? Number.NEGATIVE_INFINITY : (this.#scores[0] as number);
  }

  offer(key: number, score: number, place = -1): void {
    if (this.#size < this.#keys.length) this.#rise(this.#size++, key, score, place);
    else if (this.#isWorse(0, key, score)) this.#sink(key, score, place);
  }

  /** Best first. */
  sorted(): ScoredAt[] {
    return Array.from({ length: this.#size }, (_, at) => ({
      key: this.#keys[at] as number,
      score: this.#scores[at] as number,
      at: this.#places[at] as number,
    })).sort(byScore);
  }

  /** Whether the item at `at` is worse than this. */
  #isWorse(at: number, key: number, score: number): boolean {
    const other = this.#scores[at] as number;
    return other < score || (other === score && (this.#keys[at] as number) > key);
  }

  #put(at: number, key: number, score: number, place: number): void {
    this.#keys[at] = key;
    this.#scores[at] = score;
    this.#places[at] = place;
  }

  #move(from: number, to: number): void {
    this.#put(to, this.#keys[from] as number, this.#scores[from] as number, this.#places[from] as number);
  }

  #rise(from: number, key: number, score: number, place: number): void {
    let at = from;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.#isWorse(parent, key, score)) break;
      this.#move(parent, at);
      at = parent;
    }
    this.#put(at, key, score, place);
  }

  #sink(key: number, score: number, place: number): void {
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= this.#size) break;
      const right = child + 1;
      if (
        right < this.#size &&
        this.#isWorse(right, this.#keys[child] as number, this.#scores[child] as number)
      ) {
        child = right;
      }
      if (!this.#isWorse(child, key, score)) break;
      this.#move(child, at);
      at = child;
    }
    this.#put(at, key, score, place);
  }
}
