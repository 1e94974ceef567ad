import { createHash } from "node:crypto";

/**
 * RFC 9162's definitions (sections 2.1.1, 2.1.3.1 and 2.1.4.1), implemented literally: recursive, with Node's hash,
 * and without any code of this program. Slow, apart from subtrees that it caches.
 */
export class Oracle {
  readonly #leaves: readonly Uint8Array[];
  readonly #known = new Map<string, Uint8Array>();

  /** @param leaves the leaves' hashes */
  constructor(leaves: readonly Uint8Array[]) {
    this.#leaves = leaves;
  }

  static leafHash(data: Uint8Array | string): Uint8Array {
    return hash(Buffer.of(0), Buffer.from(data));
  }

  get size(): number {
    return this.#leaves.length;
  }

  leaf(index: number): Uint8Array {
    const leaf = this.#leaves[index];
    if (leaf === undefined) throw new RangeError(`the oracle has no leaf ${index}`);
    return leaf;
  }

  /** MTH(D[start:end]) */
  root(end: number, start = 0): Uint8Array {
    const n = end - start;
    if (n === 0) return hash();
    if (n === 1) return this.leaf(start);
    const key = `${start}:${end}`;
    const known = this.#known.get(key);
    if (known) return known;
    const k = splitOf(n);
    const root = hash(Buffer.of(1), this.root(start + k, start), this.root(end, start + k));
    this.#known.set(key, root);
    return root;
  }

  /** PATH(m, D[start:end]) */
  path(m: number, end: number, start = 0): Uint8Array[] {
    const n = end - start;
    if (n === 1) return [];
    const k = splitOf(n);
    return m < k
      ? [...this.path(m, start + k, start), this.root(end, start + k)]
      : [...this.path(m - k, end, start + k), this.root(start + k, start)];
  }

  /** PROOF(m, D[0:n]) */
  proof(m: number, n: number): Uint8Array[] {
    return m === 0 ? [] : this.#subproof(m, 0, n, true);
  }

  #subproof(m: number, start: number, end: number, isWhole: boolean): Uint8Array[] {
    const n = end - start;
    if (m === n) return isWhole ? [] : [this.root(end, start)];
    const k = splitOf(n);
    return m <= k
      ? [...this.#subproof(m, start, start + k, isWhole), this.root(end, start + k)]
      : [...this.#subproof(m - k, start + k, end, false), this.root(start + k, start)];
  }
}

/** Leaves that are distinguished by their position. */
export function numberedLeaves(count: number): Uint8Array[] {
  return Array.from({ length: count }, (_, index) => Oracle.leafHash(`leaf ${index}`));
}

/** The largest power of two less than `n`. */
function splitOf(n: number): number {
  return 2 ** (31 - Math.clz32(n - 1));
}

function hash(...parts: readonly Uint8Array[]): Uint8Array {
  const hasher = createHash("sha256");
  for (const part of parts) hasher.update(part);
  return hasher.digest();
}
