/** SHA-256. Injected, so the same proof code runs in this program and in an auditor's browser. */
export type Sha256 = (data: Uint8Array) => Uint8Array;

/** Length of a hash in bytes. */
export const HASH_BYTES = 32;

/**
 * The three hashes of a Merkle tree (RFC 9162, section 2.1.1). Different prefixes keep a leaf from passing for a
 * node.
 */
export interface TreeHash {
  /** The root of the tree without leaves. */
  empty(): Uint8Array;
  leaf(bytes: Uint8Array): Uint8Array;
  /** @throws RangeError if a hash is not 32 bytes long */
  node(left: Uint8Array, right: Uint8Array): Uint8Array;
}

export function treeHash(sha256: Sha256): TreeHash {
  const pair = new Uint8Array(1 + 2 * HASH_BYTES);
  pair[0] = 1;
  return {
    empty: () => sha256(new Uint8Array(0)),
    leaf(bytes) {
      const prefixed = new Uint8Array(bytes.length + 1);
      prefixed.set(bytes, 1);
      return sha256(prefixed);
    },
    node(left, right) {
      if (left.length !== HASH_BYTES || right.length !== HASH_BYTES) {
        throw new RangeError(`a hash has ${HASH_BYTES} bytes`);
      }
      pair.set(left, 1);
      pair.set(right, 1 + HASH_BYTES);
      return sha256(pair);
    },
  };
}

export function isEqual(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let at = 0; at < a.length; at++) if (a[at] !== b[at]) return false;
  return true;
}
