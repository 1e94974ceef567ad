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
    if (this.#size < this.#keys.length) this.#rise(key, score, place);
    else if (isWorse(this.#scores[0] as number, this.#keys[0] as number, score, key)) {
      this.#sink(key, score, place);
    }
  }

  /** Best first. */
  sorted(): ScoredAt[] {
    return Array.from({ length: this.#size }, (_, at) => ({
      key: this.#keys[at] as number,
      score: this.#scores[at] as number,
      at: this.#places[at] as number,
    })).sort(byScore);
  }

  #put(at: number, key: number, score: number, place: number): void {
    this.#keys[at] = key;
    this.#scores[at] = score;
    this.#places[at] = place;
  }

  #move(from: number, to: number): void {
    this.#put(to, this.#keys[from] as number, this.#scores[from] as number, this.#places[from] as number);
  }

  #rise(key: number, score: number, place: number): void {
    let at = this.#size++;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (isWorse(this.#scores[parent] as number, this.#keys[parent] as number, score, key)) break;
      this.#move(parent, at);
      at = parent;
    }
    this.#put(at, key, score, place);
  }

  /** Replaces the worst item. */
  #sink(key: number, score: number, place: number): void {
    const keys = this.#keys;
    const scores = this.#scores;
    const size = this.#size;
    let at = 0;
    for (let left = 1; left < size; left = 2 * at + 1) {
      let child = left;
      let childScore = scores[left] as number;
      const right = left + 1;
      if (right < size) {
        const rightScore = scores[right] as number;
        if (isWorse(rightScore, keys[right] as number, childScore, keys[left] as number)) {
          child = right;
          childScore = rightScore;
        }
      }
      if (!isWorse(childScore, keys[child] as number, score, key)) break;
      this.#move(child, at);
      at = child;
    }
    this.#put(at, key, score, place);
  }
}

/** The order of `byScore`: whether the first item comes after the second. */
function isWorse(score: number, key: number, otherScore: number, otherKey: number): boolean {
  return score < otherScore || (score === otherScore && key > otherKey);
}
