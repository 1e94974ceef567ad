import { isEqual, type TreeHash } from "./hash.ts";
import { splitOf } from "./ranges.ts";

/** The root that an inclusion proof leads to; null for one of a wrong length. `index` counts from 0. */
export function rootOfInclusion(
  hash: TreeHash,
  leaf: Uint8Array,
  index: number,
  size: number,
  proof: readonly Uint8Array[],
): Uint8Array | null {
  if (!(index >= 0 && index < size)) return null;
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

/** Whether the newer tree begins with the older one (RFC 9162, section 2.1.4.2). */
export function isConsistent(
  hash: TreeHash,
  from: TreeHead,
  to: TreeHead,
  proof: readonly Uint8Array[],
): boolean {
  if (from.size > to.size) return false;
  if (from.size === 0) return proof.length === 0 && isEqual(from.root, hash.empty());
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
