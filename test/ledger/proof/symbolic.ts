import type { TreeHash } from "../../../src/ledger/proof/hash.ts";
import type { LeafRange } from "../../../src/ledger/proof/ranges.ts";

/** The "hash" of a range of leaves is the range itself, so trees of any size can be traversed without leaves. */
export function symbolOf({ start, end }: LeafRange): Uint8Array {
  const symbol = new Uint8Array(32);
  const view = new DataView(symbol.buffer);
  view.setBigUint64(0, BigInt(start));
  view.setBigUint64(8, BigInt(end));
  return symbol;
}

/** Joins ranges only as RFC 9162, section 2.1.1, does; anything else is an error. Exact at every size. */
export const SYMBOLIC: TreeHash = {
  empty: () => symbolOf({ start: 0, end: 0 }),
  leaf: () => {
    throw new Error("symbols stand for leaves' places, not for their bytes");
  },
  node(left, right) {
    const [start, middle] = rangeOf(left);
    const [next, end] = rangeOf(right);
    let split = 1n;
    while (split * 2n < end - start) split *= 2n;
    if (middle !== next || middle - start !== split) {
      throw new Error(`${start} to ${middle} and ${next} to ${end} are not the halves of a tree`);
    }
    const symbol = new Uint8Array(32);
    new DataView(symbol.buffer).setBigUint64(0, start);
    new DataView(symbol.buffer).setBigUint64(8, end);
    return symbol;
  },
};

function rangeOf(symbol: Uint8Array): readonly [bigint, bigint] {
  const view = new DataView(symbol.buffer, symbol.byteOffset);
  return [view.getBigUint64(0), view.getBigUint64(8)];
}
