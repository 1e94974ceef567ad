/**
 * Slots for work in progress, counted per group and in total. A slot is a lease with an owner: releasing it twice, or
 * without having taken it, changes nothing, so counts cannot drift.
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

  /** False if the owner already has one. */
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
