const CHUNK_BITS = 65_536;

/** A set of non-negative integers, one bit each. One property of a million entries takes about 100 KB. */
export class Bits {
  readonly #chunks = new Map<number, Uint8Array>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  has(bit: number): boolean {
    return (
      ((this.#chunks.get(Math.floor(bit / CHUNK_BITS))?.[(bit % CHUNK_BITS) >> 3] ?? 0) & maskOf(bit)) !== 0
    );
  }

  add(bit: number): void {
    if (this.has(bit)) return;
    const key = Math.floor(bit / CHUNK_BITS);
    const chunk = this.#chunks.get(key) ?? new Uint8Array(CHUNK_BITS / 8);
    this.#chunks.set(key, chunk);
    const byte = (bit % CHUNK_BITS) >> 3;
    chunk[byte] = (chunk[byte] ?? 0) | maskOf(bit);
    this.#size += 1;
  }

  delete(bit: number): void {
    if (!this.has(bit)) return;
    const chunk = this.#chunks.get(Math.floor(bit / CHUNK_BITS));
    const byte = (bit % CHUNK_BITS) >> 3;
    if (chunk) chunk[byte] = (chunk[byte] ?? 0) & ~maskOf(bit);
    this.#size -= 1;
  }

  /** Members from `first` (inclusive) to `end` (exclusive), in order. Members may be deleted during iteration. */
  *within(first: number, end: number): Generator<number, void> {
    for (const key of [...this.#chunks.keys()].sort((a, b) => a - b)) {
      const start = Math.max(first, key * CHUNK_BITS);
      const stop = Math.min(end, (key + 1) * CHUNK_BITS);
      for (let bit = start; bit < stop; bit++) {
        // Skip eight at a time if none of them is a member.
        if (bit % 8 === 0 && this.#chunks.get(key)?.[(bit % CHUNK_BITS) >> 3] === 0) bit += 7;
        else if (this.has(bit)) yield bit;
      }
    }
  }
}

function maskOf(bit: number): number {
  return 1 << (bit % 8);
}
