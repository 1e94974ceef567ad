/** Counts by name for some hundred names: what comes past those is counted together, so that nobody can fill the memory. */
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

  /** Sorted by `weight`, the greatest first, then by name. */
  sorted(weight: (value: T) => number): (readonly [name: string, value: T])[] {
    return [...this.#known].sort(([a, x], [b, y]) => weight(y) - weight(x) || (a < b ? -1 : a > b ? 1 : 0));
  }

  get size(): number {
    return this.#known.size;
  }

  /** What all names past the cap came to; null where there were none. */
  get others(): T | null {
    return this.#others;
  }
}

/** The first items of many, and how many there were. */
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
