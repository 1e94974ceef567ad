import type { TreeHash } from "./hash.ts";

export interface Subtree {
  readonly level: number;
  readonly hash: Uint8Array;
}

/** A Merkle tree that grows to the right and keeps only what its root requires: one complete subtree per level. */
export class GrowingTree {
  readonly #hash: TreeHash;
  #subtrees: Subtree[] = [];
  #size = 0;

  constructor(hash: TreeHash) {
    this.#hash = hash;
  }

  /** Number of leaves. */
  get size(): number {
    return this.#size;
  }

  /** A copy that grows independently. */
  copy(): GrowingTree {
    const copied = new GrowingTree(this.#hash);
    copied.#subtrees = [...this.#subtrees];
    copied.#size = this.#size;
    return copied;
  }

  /**
   * Appends a complete subtree of 2^`level` leaves. At level 0, `hash` is a leaf's hash.
   * @throws RangeError if a subtree of this size does not fit at the end
   */
  append(hash: Uint8Array, level = 0): void {
    if (this.#size % 2 ** level !== 0)
      throw new RangeError(`a subtree of level ${level} does not fit at ${this.#size}`);
    this.#size += 2 ** level;
    let added: Subtree = { level, hash };
    for (let left = this.#subtrees.at(-1); left?.level === added.level; left = this.#subtrees.at(-1)) {
      this.#subtrees.pop();
      added = { level: added.level + 1, hash: this.#hash.node(left.hash, added.hash) };
    }
    this.#subtrees.push(added);
  }

  /** What the tree consists of, in the order in which they can be appended to an empty one. */
  get subtrees(): readonly Subtree[] {
    return this.#subtrees;
  }

  /** @param right Root of further leaves to the right, fewer than the smallest subtree in this tree contains */
  root(right?: Uint8Array): Uint8Array {
    const hashes = this.#subtrees.map(({ hash }) => hash);
    return foldRight(this.#hash, right ? [...hashes, right] : hashes) ?? this.#hash.empty();
  }
}

/** The combined hash of adjacent subtrees, largest first; undefined if there are none. */
export function foldRight(hash: TreeHash, subtrees: readonly Uint8Array[]): Uint8Array | undefined {
  return subtrees.reduceRight<Uint8Array | undefined>(
    (right, left) => (right === undefined ? left : hash.node(left, right)),
    undefined,
  );
}
