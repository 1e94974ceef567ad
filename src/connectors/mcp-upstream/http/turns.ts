/** Does so many things at a time, in the order in which they came; so many others wait. */
export class Turns {
  readonly #most: number;
  readonly #mostWaiting: number;
  readonly #waiting: (() => void)[] = [];
  #out = 0;

  constructor(most: number, mostWaiting: number) {
    this.#most = most;
    this.#mostWaiting = mostWaiting;
  }

  /** @param full makes what is thrown where too much waits already. @throws that; what `work` throws */
  async take<Value>(work: () => Promise<Value>, full: () => Error): Promise<Value> {
    if (this.#out >= this.#most) {
      if (this.#waiting.length >= this.#mostWaiting) throw full();
      await new Promise<void>((resolve) => void this.#waiting.push(resolve));
    } else this.#out += 1;
    try {
      return await work();
    } finally {
      // Whoever is next takes the place over.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#out -= 1;
    }
  }
}
