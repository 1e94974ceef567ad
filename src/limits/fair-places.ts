/** The number of places. A place may count as more than one, by its weight. */
export interface FairPlacesOptions {
  /** The limit for one holder, however many places are free. */
  readonly perHolder: number;
  readonly total: number;
  /** The error for a refused place. `isOwn`: the holder has used its own places, not all of them. */
  readonly refused: (isOwn: boolean) => Error;
}

const NOTHING = (): void => {};

/** A place, until it is released or goes to another holder. */
export class FairPlace<Holder> {
  readonly holder: Holder;
  readonly weight: number;
  readonly #release: (place: FairPlace<Holder>) => void;
  #end = NOTHING;
  #isLost = false;

  constructor(holder: Holder, weight: number, release: (place: FairPlace<Holder>) => void) {
    this.holder = holder;
    this.weight = weight;
    this.#release = release;
  }

  /** Releases the place. Can be called repeatedly. */
  readonly release = (): void => this.#release(this);

  /**
   * @param end ends whatever uses the place, if the place is lost. Called immediately if that has already happened
   */
  endsBy(end: () => void): void {
    if (this.#isLost) end();
    else this.#end = end;
  }

  /** @see endsBy */
  lose(): void {
    this.#isLost = true;
    this.#end();
  }
}

/**
 * Places shared by max-min fairness: a holder may use what nobody else needs, up to its cap. When all places are
 * taken, a holder with less than an equal share takes places from the holder with the most, whose oldest are lost.
 */
export class FairPlaces<Holder> {
  readonly #options: FairPlacesOptions;
  /** Oldest first. */
  readonly #places = new Set<FairPlace<Holder>>();
  readonly #held = new Map<Holder, number>();
  #taken = 0;

  constructor(options: FairPlacesOptions) {
    this.#options = options;
  }

  /** The weight of all places that are taken. */
  get taken(): number {
    return this.#taken;
  }

  /**
   * Takes a place. It MUST be released. A weight above the holder's cap counts as the cap.
   * @param mustTake never refuses: the holder's oldest places are lost instead
   * @throws the error made by `refused`
   */
  take(holder: Holder, weight = 1, mustTake = false): FairPlace<Holder> {
    const { perHolder, total, refused } = this.#options;
    const size = Math.min(weight, perHolder);
    while (this.#heldBy(holder) + size > perHolder) {
      if (!mustTake) throw refused(true);
      this.#loseOldest(holder);
    }
    while (this.#taken + size > total) {
      const holders = this.#held.size + (this.#held.has(holder) ? 0 : 1);
      const isBelowShare = this.#heldBy(holder) + size <= total / holders;
      if (!isBelowShare && !mustTake) throw refused(false);
      this.#loseOldest(isBelowShare || !this.#held.has(holder) ? this.#holderOfMost() : holder);
    }
    const place = new FairPlace(holder, size, (released) => this.#release(released));
    this.#places.add(place);
    this.#taken += size;
    this.#held.set(holder, this.#heldBy(holder) + size);
    return place;
  }

  #heldBy(holder: Holder): number {
    return this.#held.get(holder) ?? 0;
  }

  #holderOfMost(): Holder {
    const [first, ...others] = this.#held;
    if (!first) throw new Error("nobody holds the places in use");
    return others.reduce((most, each) => (each[1] > most[1] ? each : most), first)[0];
  }

  #loseOldest(holder: Holder): void {
    for (const place of this.#places) {
      if (place.holder !== holder) continue;
      this.#release(place);
      place.lose();
      return;
    }
    throw new Error("the holder has no place to lose");
  }

  #release(place: FairPlace<Holder>): void {
    if (!this.#places.delete(place)) return;
    const { holder, weight } = place;
    this.#taken -= weight;
    const left = this.#heldBy(holder) - weight;
    if (left === 0) this.#held.delete(holder);
    else this.#held.set(holder, left);
  }
}
