import { GrowingTree } from "../proof/tree.ts";
import { TILE_WIDTH } from "../tiles.ts";
import { TREE } from "../tree-hash.ts";
import type { TreePosition } from "./walk.ts";

const TILE_LEVEL = Math.log2(TILE_WIDTH);

/**
 * The tree of the entries, built so that the roots of its tiles are available. Each is hashed once for both purposes.
 */
export class LedgerTree {
  readonly #tiles = new GrowingTree(TREE);
  #leaves = new GrowingTree(TREE);
  #isLost = false;

  get size(): number {
    return this.#tiles.size + this.#leaves.size;
  }

  /** Whether a step had no leaf, so the tree is unknown from there on. */
  get isLost(): boolean {
    return this.#isLost;
  }

  /** MUST be called with each step, in order. @returns the root of the tile that it completes */
  take({ seq, leaf }: TreePosition): Uint8Array | null {
    this.#isLost ||= leaf === null || seq !== this.size + 1;
    if (leaf === null || this.#isLost) return null;
    this.#leaves.append(leaf);
    if (this.#leaves.size < TILE_WIDTH) return null;
    const root = this.#leaves.root();
    this.#tiles.append(root, TILE_LEVEL);
    this.#leaves = new GrowingTree(TREE);
    return root;
  }

  root(): Uint8Array {
    return this.#leaves.size === 0 ? this.#tiles.root() : this.#tiles.root(this.#leaves.root());
  }

  /** Marks the tree as unknown from here on. */
  lose(): void {
    this.#isLost = true;
  }
}
