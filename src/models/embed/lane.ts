/** How many calls may wait for a lane; one more is refused. */
const MOST_WAITING = 1_000;

/** Lets so many in at once; the others wait in the order they came. */
export class Lane {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(places: number) {
    this.#free = places;
  }

  /**
   * Resolves once there is a place, which MUST be given back with `leave`; to false when too many wait already.
   * Rejects with the signal's reason.
   */
  async enter(signal: AbortSignal): Promise<boolean> {
    signal.throwIfAborted();
    if (this.#free > 0) {
      this.#free--;
      return true;
    }
    if (this.#waiting.size >= MOST_WAITING) return false;
    await new Promise<void>((resolve, reject) => {
      const take = (): void => {
        signal.removeEventListener("abort", giveUp);
        resolve();
      };
      const giveUp = (): void => {
        this.#waiting.delete(take);
        reject(signal.reason);
      };
      this.#waiting.add(take);
      signal.addEventListener("abort", giveUp, { once: true });
    });
    return true;
  }

  leave(): void {
    const [next] = this.#waiting;
    if (!next) {
      this.#free++;
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}
