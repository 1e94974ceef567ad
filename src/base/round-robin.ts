/** An item that waits for its workspace's turn. */
export interface WaitingItem {
  readonly workspaceId: number;
}

/**
 * A queue in which workspaces take turns, one item each. A workspace's own items are served in order. A workspace that
 * has had its turn goes to the end of the round, so no workspace waits behind a hundred items of another one.
 */
export class RoundRobin<Item extends WaitingItem> {
  /** The waiting items of each workspace that has any, in the order of the round. */
  readonly #round = new Map<number, Set<Item>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** How many items of a workspace are waiting. */
  sizeOf(workspaceId: number): number {
    return this.#round.get(workspaceId)?.size ?? 0;
  }

  add(item: Item): void {
    const waiting = this.#round.get(item.workspaceId);
    if (waiting) waiting.add(item);
    else this.#round.set(item.workspaceId, new Set([item]));
    this.#size += 1;
  }

  /** Returns an item that was taken but not served to the front of its workspace's items. */
  putBack(item: Item): void {
    this.#round.set(item.workspaceId, new Set([item, ...(this.#round.get(item.workspaceId) ?? [])]));
    this.#size += 1;
  }

  /** Takes the next item of the workspaces that may be served. Undefined if none is waiting. */
  take(mayBeServed: (workspaceId: number) => boolean = () => true): Item | undefined {
    for (const [workspaceId, waiting] of this.#round) {
      if (!mayBeServed(workspaceId)) continue;
      const [item] = waiting;
      if (item) waiting.delete(item);
      this.#round.delete(workspaceId);
      if (waiting.size > 0) this.#round.set(workspaceId, waiting);
      this.#size -= 1;
      return item;
    }
    return undefined;
  }

  /** Removes a waiting item. False if it is not waiting. */
  remove(item: Item): boolean {
    const waiting = this.#round.get(item.workspaceId);
    if (!waiting?.delete(item)) return false;
    if (waiting.size === 0) this.#round.delete(item.workspaceId);
    this.#size -= 1;
    return true;
  }

  /** Removes and returns all items. */
  drain(): Item[] {
    const items = [...this.#round.values()].flatMap((waiting) => [...waiting]);
    this.#round.clear();
    this.#size = 0;
    return items;
  }
}
