import { BITS_BYTES, BLOCK } from "./block-index.ts";

/** Facts about a block of 256 entries whose bytes were checked against the signed tree. They never change. */
export interface CheckedBlock {
  /** The hash of the block's leaves in the ledger's tree. */
  readonly root: Uint8Array;
  /** By key, one bit for each entry that has it. Computed from the entries, as the stored index should be. */
  readonly bits: ReadonlyMap<string, Uint8Array>;
}

/**
 * Maximum memory in bytes for checked blocks: about 10,000 of them, or 2.5 million entries. Past that, the block that
 * was checked first is evicted.
 */
const MOST_BYTES = 32 << 20;
/** Overhead in bytes for each key and each block, besides the bits and the key. */
const OVERHEAD = 200;

/** The blocks that this process has checked, across all workspaces. */
export class CheckedBlocks {
  readonly #most: number;
  readonly #blocks = new Map<string, { readonly block: CheckedBlock; readonly bytes: number }>();
  #bytes = 0;

  constructor(most = MOST_BYTES) {
    this.#most = most;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get(workspaceId: number, block: number): CheckedBlock | undefined {
    return this.#blocks.get(keyOf(workspaceId, block))?.block;
  }

  add(workspaceId: number, number: number, block: CheckedBlock): void {
    const key = keyOf(workspaceId, number);
    this.#remove(key);
    let bytes = OVERHEAD;
    for (const name of block.bits.keys()) bytes += OVERHEAD + BITS_BYTES + 2 * name.length;
    this.#blocks.set(key, { block, bytes });
    this.#bytes += bytes;
    for (const oldest of this.#blocks.keys()) {
      if (this.#bytes <= this.#most) break;
      this.#remove(oldest);
    }
  }

  #remove(key: string): void {
    const known = this.#blocks.get(key);
    if (!known) return;
    this.#blocks.delete(key);
    this.#bytes -= known.bytes;
  }
}

function keyOf(workspaceId: number, block: number): string {
  return `${workspaceId}/${block}`;
}

/**
 * The seqs of the block's entries that have all keys of at least one set, in ascending order. Without sets, all of
 * them.
 */
export function seqsIn(
  { bits }: Pick<CheckedBlock, "bits">,
  block: number,
  sets: readonly (readonly string[])[],
): readonly number[] {
  const found = new Uint8Array(BITS_BYTES);
  if (sets.length === 0) found.fill(255);
  for (const keys of sets) {
    const each = keys.map((key) => bits.get(key));
    if (each.includes(undefined)) continue;
    for (let at = 0; at < BITS_BYTES; at++) {
      let all = 255;
      for (const one of each) all &= one?.[at] ?? 0;
      found[at] = (found[at] ?? 0) | all;
    }
  }
  const seqs: number[] = [];
  for (const [at, byte] of found.entries()) {
    for (let left = byte, seq = block * BLOCK + at * 8 + 1; left !== 0; left >>= 1, seq++) {
      if (left & 1) seqs.push(seq);
    }
  }
  return seqs;
}
