/** Counts by name for a few hundred names. All further names are counted together, so nobody can exhaust memory. */
export class CappedTally<T> {
  readonly #most: number;
  readonly #make: () => T;
  readonly #known = new Map<string, T>();
  #others: T | null = null;

  constructor(most: number, make: () => T) {
    this.#most = most;
    this.#make = make;
  }

  of(name: string): T {
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    if (this.#known.size >= this.#most) {
      this.#others ??= this.#make();
      return this.#others;
    }
    const made = this.#make();
    this.#known.set(name, made);
    return made;
  }

  has(name: string): boolean {
    return this.#known.has(name);
  }

  /** Sorted by `weight` in descending order, then by name. */
  sorted(weight: (value: T) => number): (readonly [name: string, value: T])[] {
    return [...this.#known].sort(([a, x], [b, y]) => weight(y) - weight(x) || (a < b ? -1 : a > b ? 1 : 0));
  }

  get size(): number {
    return this.#known.size;
  }

  /** The total of all names past the cap; null if there are none. */
  get others(): T | null {
    return this.#others;
  }
}

/** The first items of a list, and the total number of items. */
export class CappedList<T> {
  readonly items: T[] = [];
  readonly #most: number;
  #count = 0;

  constructor(most: number) {
    this.#most = most;
  }

  add(item: T): void {
    this.#count += 1;
    if (this.items.length < this.#most) this.items.push(item);
  }

  get count(): number {
    return this.#count;
  }

  get left(): number {
    return this.#count - this.items.length;
  }
}
