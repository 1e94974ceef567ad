/**
 * How many slots a group may hold, as a multiple of the free ones. One group can take three quarters of all slots,
 * and a second one three quarters of the rest: whichever groups hold the others, some slots stay free.
 */
const GROUP_SHARE = 3;

/**
 * Limits concurrent use of one kind of resource: in total, by owner and by group of owners. Only counts; it does not
 * know connections.
 */
export class Slots {
  readonly #most: number;
  readonly #mostOfOne: number;
  /** Owners without any are removed, so it has at most `most` entries. */
  readonly #byOwner = new Map<string, number>();
  readonly #byGroup = new Map<number, number>();
  #taken = 0;

  constructor(most: number, mostOfOne: number) {
    this.#most = most;
    this.#mostOfOne = mostOfOne;
  }

  get taken(): number {
    return this.#taken;
  }

  /** @returns a function that releases the slot (repeated calls have no effect), or the limit that is reached */
  take(owner: string, group: number | null = null): (() => void) | "all" | "own" | "group" {
    if ((this.#byOwner.get(owner) ?? 0) >= this.#mostOfOne) return "own";
    if (this.#taken >= this.#most) return "all";
    const held = group === null ? 0 : (this.#byGroup.get(group) ?? 0);
    if (held >= GROUP_SHARE * (this.#most - this.#taken)) return "group";
    this.#taken += 1;
    add(this.#byOwner, owner, 1);
    if (group !== null) add(this.#byGroup, group, 1);
    let isOut = true;
    return () => {
      if (!isOut) return;
      isOut = false;
      this.#taken -= 1;
      add(this.#byOwner, owner, -1);
      if (group !== null) add(this.#byGroup, group, -1);
    };
  }
}

function add<Key>(counts: Map<Key, number>, key: Key, change: 1 | -1): void {
  const count = (counts.get(key) ?? 0) + change;
  if (count > 0) counts.set(key, count);
  else counts.delete(key);
}
