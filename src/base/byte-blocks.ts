const FIRST_BLOCK = 4 * 1024;
const LARGEST_BLOCK = 256 * 1024;

/** Collects bytes in blocks. Keeping one-byte parts separately would take hundreds of times as much memory. */
export class ByteBlocks {
  readonly #reserve: (bytes: number) => void;
  #blocks: Uint8Array[] = [];
  #open = new Uint8Array();
  /** Bytes used in the open block. */
  #used = 0;
  #length = 0;

  /** @param reserve called before memory is allocated; may throw */
  constructor(reserve: (bytes: number) => void = () => {}) {
    this.#reserve = reserve;
  }

  get length(): number {
    return this.#length;
  }

  /** @throws whatever `reserve` throws */
  add(part: Uint8Array): void {
    for (let from = 0; from < part.length; ) {
      if (this.#used === this.#open.length) this.#begin(part.length - from);
      const piece = part.subarray(from, from + this.#open.length - this.#used);
      this.#open.set(piece, this.#used);
      this.#used += piece.length;
      from += piece.length;
    }
    this.#length += part.length;
  }

  joined(): Buffer<ArrayBuffer> {
    return Buffer.concat(this.#blocks, this.#length);
  }

  clear(): void {
    this.#blocks = [];
    this.#open = new Uint8Array();
    this.#used = 0;
    this.#length = 0;
  }

  /** Blocks grow with the bytes, so they take at most twice their size. */
  #begin(wanted: number): void {
    const size = Math.min(LARGEST_BLOCK, Math.max(FIRST_BLOCK, this.#length, wanted));
    this.#reserve(size);
    this.#open = new Uint8Array(size);
    this.#blocks.push(this.#open);
    this.#used = 0;
  }
}
