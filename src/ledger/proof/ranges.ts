/** Leaves from `start` (inclusive) to `end` (exclusive), counted from 0. */
export interface LeafRange {
  readonly start: number;
  readonly end: number;
}

/** A complete subtree of 2^`level` leaves, beginning at leaf `index` · 2^`level`. */
export interface TreeNode {
  readonly level: number;
  readonly index: number;
}

/** The largest power of two below `n`, which is 2 or more. Sizes go up to 2^53, beyond the range of bit operators. */
export function splitOf(n: number): number {
  let power = 1;
  while (power * 2 < n) power *= 2;
  return power;
}

/** The subtrees in an inclusion proof (RFC 9162, section 2.1.3.1), from the leaf's sibling to the root's child. */
export function inclusionRanges(index: number, size: number): LeafRange[] {
  if (!(index >= 0 && index < size)) throw new RangeError(`there is no leaf ${index} among ${size}`);
  const ranges: LeafRange[] = [];
  let start = 0;
  let end = size;
  while (end - start > 1) {
    const middle = start + splitOf(end - start);
    if (index < middle) {
      ranges.push({ start: middle, end });
      end = middle;
    } else {
      ranges.push({ start, end: middle });
      start = middle;
    }
  }
  return ranges.reverse();
}

/**
 * The subtrees in a consistency proof (RFC 9162, section 2.1.4.1). Empty from an empty tree, and from a tree to
 * itself.
 */
export function consistencyRanges(from: number, to: number): LeafRange[] {
  if (!(from >= 0 && from <= to))
    throw new RangeError(`a tree of ${from} leaves cannot grow into one of ${to}`);
  if (from === 0 || from === to) return [];
  const ranges: LeafRange[] = [];
  let start = 0;
  let end = to;
  while (end > from) {
    const middle = start + splitOf(end - start);
    if (from <= middle) {
      ranges.push({ start: middle, end });
      end = middle;
    } else {
      ranges.push({ start, end: middle });
      start = middle;
    }
  }
  // If this is the whole older tree, the verifier already has its root.
  if (start > 0) ranges.push({ start, end });
  return ranges.reverse();
}

/**
 * The complete subtrees that make up a range, from left to right, each as large as its position and the range's end
 * permit.
 */
export function nodesOf({ start, end }: LeafRange): TreeNode[] {
  const nodes: TreeNode[] = [];
  for (let at = start; at < end; ) {
    let level = 0;
    let width = 1;
    while (at % (width * 2) === 0 && at + width * 2 <= end) {
      width *= 2;
      level += 1;
    }
    nodes.push({ level, index: at / width });
    at += width;
  }
  return nodes;
}
