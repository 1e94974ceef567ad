/** SHA-256 of some bytes. Injected, so that the same code proves things here and in an auditor's browser. */
export type Sha256 = (data: Uint8Array) => Uint8Array;

/** Bytes of a hash. */
export const HASH_BYTES = 32;

/** The three hashes of a Merkle tree (RFC 9162, section 2.1.1). A leaf can't be taken for a node: their prefixes differ. */
export interface TreeHash {
  /** Of the tree that has no leaves. */
  empty(): Uint8Array;
  leaf(bytes: Uint8Array): Uint8Array;
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
      pair.set(left, 1);
      pair.set(right, 1 + HASH_BYTES);
      return sha256(pair);
    },
  };
}

export function isEqual(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}
