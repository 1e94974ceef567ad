/**
 * How many times as much as is free a group may hold. A single group can take three quarters of all, a second one three
 * quarters of what that has left: somebody who needs a slot finds one, whoever holds the others.
 */
const GROUP_SHARE = 3;

/** How many of a kind may be out at once, in all, of one owner and of a group of owners. Counts only: it knows no connection. */
export class Slots {
  readonly #most: number;
  readonly #mostOfOne: number;
  /** Owners that have none out are not in it: it has `most` entries at most. */
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

  /** @returns what gives the slot back, once however often it is called; or which of the limits is reached */
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
