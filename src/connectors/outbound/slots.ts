/** How many of a kind may be out at once, in all and of one owner. Counts only: it knows no connection. */
export class Slots {
  readonly #most: number;
  readonly #mostOfOne: number;
  /** Owners that have none out are not in it: it has `most` entries at most. */
  readonly #byOwner = new Map<string, number>();
  #taken = 0;

  constructor(most: number, mostOfOne: number) {
    this.#most = most;
    this.#mostOfOne = mostOfOne;
  }

  get taken(): number {
    return this.#taken;
  }

  /** @returns what gives the slot back, once however often it is called; or which of the two limits is reached */
  take(owner: string): (() => void) | "all" | "own" {
    const own = this.#byOwner.get(owner) ?? 0;
    if (own >= this.#mostOfOne) return "own";
    if (this.#taken >= this.#most) return "all";
    this.#byOwner.set(owner, own + 1);
    this.#taken += 1;
    let isOut = true;
    return () => {
      if (!isOut) return;
      isOut = false;
      this.#taken -= 1;
      const left = (this.#byOwner.get(owner) ?? 0) - 1;
      if (left > 0) this.#byOwner.set(owner, left);
      else this.#byOwner.delete(owner);
    };
  }
}
