/** A mutex for each key. Waiters take turns in order of arrival. */
export class Locks {
  readonly #last = new Map<number, Promise<unknown>>();

  async run<T>(key: number, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key) ?? Promise.resolve();
    const mine = before.then(work, work);
    this.#last.set(key, mine);
    try {
      return await mine;
    } finally {
      if (this.#last.get(key) === mine) this.#last.delete(key);
    }
  }
}
