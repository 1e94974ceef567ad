/**
 * Slots for work in progress, counted per group and over all. A slot is a lease with an owner: releasing twice, or what
 * was never taken, changes nothing, so that a count can never drift.
 */
export class Leases {
  readonly #owners = new Map<string, number>();
  readonly #groups = new Map<number, number>();

  get total(): number {
    return this.#owners.size;
  }

  held(group: number): number {
    return this.#groups.get(group) ?? 0;
  }

  /** False when the owner holds one already. */
  take(group: number, owner: string): boolean {
    if (this.#owners.has(owner)) return false;
    this.#owners.set(owner, group);
    this.#groups.set(group, this.held(group) + 1);
    return true;
  }

  release(owner: string): void {
    const group = this.#owners.get(owner);
    if (group === undefined) return;
    this.#owners.delete(owner);
    const left = this.held(group) - 1;
    if (left > 0) this.#groups.set(group, left);
    else this.#groups.delete(group);
  }
}
