import { HASH_BYTES, isEqual, type TreeHash } from "./hash.ts";
import { splitOf } from "./ranges.ts";

/**
 * The root that results from an inclusion proof. Null if the tree has no such leaf, if the number of hashes does not
 * match the leaf's position, or if a hash is not 32 bytes long. `index` counts from 0. The root does not prove the
 * tree's size: `size` MUST be the one that was signed with the root.
 */
export function rootOfInclusion(
  hash: TreeHash,
  leaf: Uint8Array,
  index: number,
  size: number,
  proof: readonly Uint8Array[],
): Uint8Array | null {
  if (!isSize(index) || !isSize(size) || index >= size || !areHashes([leaf, ...proof])) return null;
  const rest = [...proof];
  const root = climb(index, size);
  return rest.length === 0 ? root : null;

  function climb(at: number, width: number): Uint8Array | null {
    if (width === 1) return leaf;
    const sibling = rest.pop();
    if (sibling === undefined) return null;
    const left = splitOf(width);
    const below = at < left ? climb(at, left) : climb(at - left, width - left);
    if (below === null) return null;
    return at < left ? hash.node(below, sibling) : hash.node(sibling, below);
  }
}

/** A tree's size and root. */
export interface TreeHead {
  readonly size: number;
  readonly root: Uint8Array;
}

/**
 * Whether the newer tree begins with the older one (RFC 9162, section 2.1.4.2). Every tree begins with the empty
 * tree.
 */
export function isConsistent(
  hash: TreeHash,
  from: TreeHead,
  to: TreeHead,
  proof: readonly Uint8Array[],
): boolean {
  if (!isSize(from.size) || !isSize(to.size) || from.size > to.size) return false;
  if (!areHashes([from.root, to.root, ...proof])) return false;
  if (from.size === 0 && !isEqual(from.root, hash.empty())) return false;
  if (from.size === 0 && to.size > 0) return proof.length === 0;
  const rest = [...proof];
  const roots = climb(from.size, to.size, true);
  return (
    roots !== null && rest.length === 0 && isEqual(roots.older, from.root) && isEqual(roots.newer, to.root)
  );

  function climb(
    older: number,
    newer: number,
    isWholeOlderTree: boolean,
  ): { readonly older: Uint8Array; readonly newer: Uint8Array } | null {
    if (older === newer) {
      const root = isWholeOlderTree ? from.root : rest.pop();
      return root === undefined ? null : { older: root, newer: root };
    }
    const sibling = rest.pop();
    if (sibling === undefined) return null;
    const left = splitOf(newer);
    if (older <= left) {
      const below = climb(older, left, isWholeOlderTree);
      return below && { older: below.older, newer: hash.node(below.newer, sibling) };
    }
    const below = climb(older - left, newer - left, false);
    return below && { older: hash.node(sibling, below.older), newer: hash.node(sibling, below.newer) };
  }
}

/** Untrusted input may contain any number. */
function isSize(size: number): boolean {
  return Number.isSafeInteger(size) && size >= 0;
}

function areHashes(hashes: readonly Uint8Array[]): boolean {
  return hashes.every(({ length }) => length === HASH_BYTES);
}
