import { SharedWork } from "../../base/shared-work.ts";
import type { Sql } from "../../store/db.ts";
import type { TreeHead } from "../proof/check.ts";
import { HASH_BYTES } from "../proof/hash.ts";
import type { GrowingTree } from "../proof/tree.ts";
import { appendedSince } from "./appended.ts";
import { BITS_BYTES, BLOCK, type IndexedEntry, keysOf, mark } from "./block-index.ts";
import { blockOf, EvidenceReader } from "./evidence.ts";
import { parsedEntry } from "./parsed-entry.ts";
import type { StoredEntry } from "./query.ts";

/** The last, growing block of a ledger, as checked against a signed tree. */
export interface CheckedTail {
  /** The concatenated leaves of its entries. */
  readonly leaves: Uint8Array;
  /** By key, one bit for each entry that has it. May include entries that are newer than the tree. */
  readonly bits: ReadonlyMap<string, Uint8Array>;
}

interface GrowingTail extends CheckedTail {
  readonly block: number;
  /** The tree of all entries up to the last one that was checked. */
  readonly tree: GrowingTree;
  readonly leaves: Uint8Array;
  readonly bits: Map<string, Uint8Array>;
}

/** Number of ledgers whose last block is kept: 8 KiB each plus their keys, half a megabyte at most. */
const KEPT = 64;

/**
 * The last, incomplete blocks of ledgers, cached after they were checked. A later list reads and hashes only the
 * entries that were appended since: 0.1 ms instead of 0.5 ms.
 */
export class CheckedTails {
  readonly #db: Pick<Sql, "all" | "get">;
  /** By workspace, the least recently changed first. */
  readonly #tails = new Map<number, GrowingTail>();
  readonly #checks = new SharedWork<GrowingTail>();

  constructor(db: Pick<Sql, "all" | "get">) {
    this.#db = db;
  }

  /**
   * The last block of the signed tree, which MUST be incomplete.
   * @throws LedgerChanged if the store does not contain the signed tree
   */
  async at(workspaceId: number, signed: TreeHead): Promise<CheckedTail> {
    const known = this.#tails.get(workspaceId);
    const before = known?.block === blockOf(signed.size) ? known : undefined;
    if (before && before.tree.size >= signed.size) return before;
    return this.#checks.run(`${workspaceId}/${signed.size}`, () => this.#check(workspaceId, before, signed));
  }

  /** @param before the same block, as far as it was checked before */
  async #check(workspaceId: number, before: GrowingTail | undefined, signed: TreeHead): Promise<GrowingTail> {
    const grown = before && (await this.#grown(workspaceId, before, signed));
    if (grown) return grown;
    const evidence = await EvidenceReader.open(this.#db, workspaceId, signed);
    const block = blockOf(signed.size);
    const tail = { block, tree: evidence.tree, leaves: new Uint8Array(BLOCK * HASH_BYTES), bits: new Map() };
    add(tail, await evidence.block(block));
    this.#keep(workspaceId, tail);
    return tail;
  }

  /** Undefined if the entries since then do not lead to the signed root; the whole block is then read again. */
  async #grown(workspaceId: number, known: GrowingTail, signed: TreeHead): Promise<GrowingTail | undefined> {
    const appended = await appendedSince(this.#db, workspaceId, known.tree, signed);
    if (!appended) return undefined;
    add(known, appended.entries);
    const tail = { ...known, tree: appended.tree };
    this.#keep(workspaceId, tail);
    return tail;
  }

  #keep(workspaceId: number, tail: GrowingTail): void {
    const kept = this.#tails.get(workspaceId);
    // A concurrent list may have read further.
    if (kept && kept.tree.size > tail.tree.size) return;
    this.#tails.delete(workspaceId);
    this.#tails.set(workspaceId, tail);
    const [oldest] = this.#tails.keys();
    if (oldest !== undefined && this.#tails.size > KEPT) this.#tails.delete(oldest);
  }
}

/** Adds entries whose bytes were checked. Adding one twice changes nothing. */
function add({ block, leaves, bits }: GrowingTail, entries: readonly StoredEntry[]): void {
  for (const { seq, leaf, bytes } of entries) {
    const place = seq - 1 - block * BLOCK;
    leaves.set(leaf, place * HASH_BYTES);
    for (const key of keysOf(parsedEntry(bytes) as IndexedEntry)) {
      const known = bits.get(key) ?? new Uint8Array(BITS_BYTES);
      bits.set(key, known);
      mark(known, place);
    }
  }
}
