import { TREE } from "../tree-hash.ts";

/**
 * An RFC 9162 Merkle tree with one leaf per workspace, in the order of their numbers. Leaves change. All levels are
 * kept, so a change costs one hash per level: 9 for 500 workspaces.
 */
export class HeadTree {
  readonly #places = new Map<number, number>();
  /** From the leaves to the root. */
  readonly #levels: Uint8Array[][] = [[]];

  get size(): number {
    return this.#leaves.length;
  }

  root(): Uint8Array {
    return this.#levels.at(-1)?.[0] ?? TREE.empty();
  }

  leafOf(workspaceId: number): Uint8Array | undefined {
    const place = this.#places.get(workspaceId);
    return place === undefined ? undefined : this.#leaves[place];
  }

  /** Changes a workspace's leaf. A new workspace MUST have a greater number than all existing ones. */
  set(workspaceId: number, leaf: Uint8Array): void {
    const place = this.#places.get(workspaceId) ?? this.#leaves.length;
    this.#places.set(workspaceId, place);
    this.#put(place, leaf);
  }

  removeLast(workspaceId: number): void {
    const place = this.#places.get(workspaceId);
    if (place === undefined || place !== this.#leaves.length - 1) {
      throw new RangeError(`workspace ${workspaceId} is not the last one`);
    }
    this.#places.delete(workspaceId);
    this.#leaves.pop();
    for (let at = 1; at < this.#levels.length; at++) {
      const width = this.#levels[at - 1]?.length ?? 0;
      const level = this.#levels[at] ?? [];
      level.length = Math.ceil(width / 2);
      if (width === 1) this.#levels.length = at;
    }
    const last = this.#leaves.at(-1);
    if (last) this.#put(place - 1, last);
  }

  get #leaves(): Uint8Array[] {
    const [leaves = []] = this.#levels;
    return leaves;
  }

  #put(place: number, leaf: Uint8Array): void {
    let level = this.#leaves;
    level[place] = leaf;
    for (let height = 1, at = place; level.length > 1; height++) {
      at >>= 1;
      const left = level[2 * at] ?? TREE.empty();
      const right = level[2 * at + 1];
      const above = this.#levels[height] ?? [];
      this.#levels[height] = above;
      // A node without a sibling moves up unchanged, as in RFC 9162.
      above[at] = right ? TREE.node(left, right) : left;
      level = above;
    }
  }
}
