import type { TreeHash } from "./hash.ts";

interface Subtree {
  readonly level: number;
  readonly hash: Uint8Array;
}

/** A Merkle tree that grows to the right and remembers no more than its root needs: one complete subtree a level. */
export class GrowingTree {
  readonly #hash: TreeHash;
  #subtrees: Subtree[] = [];
  #size = 0;

  constructor(hash: TreeHash) {
    this.#hash = hash;
  }

  /** Leaves so far. */
  get size(): number {
    return this.#size;
  }

  /** A tree of the same leaves that grows on its own. */
  copy(): GrowingTree {
    const copied = new GrowingTree(this.#hash);
    copied.#subtrees = [...this.#subtrees];
    copied.#size = this.#size;
    return copied;
  }

  /**
   * Puts a complete subtree of 2^`level` leaves behind what is there; a leaf's is its hash.
   * @throws RangeError where a subtree of that size can't stand
   */
  append(hash: Uint8Array, level = 0): void {
    if (this.#size % 2 ** level !== 0)
      throw new RangeError(`no subtree of level ${level} stands at ${this.#size}`);
    this.#size += 2 ** level;
    let added: Subtree = { level, hash };
    for (let left = this.#subtrees.at(-1); left?.level === added.level; left = this.#subtrees.at(-1)) {
      this.#subtrees.pop();
      added = { level: added.level + 1, hash: this.#hash.node(left.hash, added.hash) };
    }
    this.#subtrees.push(added);
  }

  /** @param right the root of leaves behind those that are here: fewer than the smallest subtree here has */
  root(right?: Uint8Array): Uint8Array {
    const hashes = this.#subtrees.map(({ hash }) => hash);
    return foldRight(this.#hash, right ? [...hashes, right] : hashes) ?? this.#hash.empty();
  }
}

/** The hash of subtrees that stand side by side, the largest first; undefined of none. */
export function foldRight(hash: TreeHash, subtrees: readonly Uint8Array[]): Uint8Array | undefined {
  return subtrees.reduceRight<Uint8Array | undefined>(
    (right, left) => (right === undefined ? left : hash.node(left, right)),
    undefined,
  );
}
