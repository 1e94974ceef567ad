import type { Sql } from "../store/db.ts";
import { BITS_BYTES, BLOCK, blockBits, type Span } from "./block-index.ts";
import { type EntryTest, entryTest } from "./entry-filter.ts";
import { blockOf, EvidenceReader } from "./evidence.ts";
import { evidenceSpan } from "./evidence-pages.ts";
import { type LedgerFaults, reportChanged } from "./faults.ts";
import type { LedgerHeads } from "./heads.ts";
import { parsedEntry } from "./parsed-entry.ts";
import {
  collectPage,
  type EntryFilter,
  type EntryPage,
  type FoundEntries,
  findEntry,
  type Look,
  lookThrough,
  type StoredEntry,
} from "./query.ts";

export interface LedgerListsParts {
  readonly db: Pick<Sql, "all" | "get">;
  readonly heads: Pick<LedgerHeads, "committed">;
  readonly faults: Pick<LedgerFaults, "report">;
}

/** Blocks that one look checks, 1 ms each; others have their turn between two. */
const BLOCKS_AT_ONCE = 4;
/** Checked blocks, a million entries, that one search of the index spans; a longer list goes on with another search. */
const CHECKED_AT_ONCE = 4_096;
/** Entries that one look into checked blocks reads. */
const AT_ONCE = 256;
/** Keys of one lookup. */
const KEYS = 32;
const PLACES = Array.from({ length: KEYS }, (_, index) => `$${index + 3}`).join(", ");
const BITS = `SELECT key, bits FROM ledger_index WHERE workspace_id = $1 AND block = $2 AND key IN (${PLACES})`;

/**
 * Lists of entries, which are answered by the index, and by rows as they lie in the file, where both were checked: a block
 * of 256 entries counts as checked once this process has held the entries against the signed tree, and the index against the
 * entries. A list that comes to another block checks it then, for 1 ms, and answers by the entries' bytes. So nothing that was
 * changed before a start can hide an entry from a list, and the start itself does not have to look.
 *
 * When somebody else has written to the file, all blocks are to be checked again (`reset`).
 */
export class LedgerLists {
  readonly #parts: LedgerListsParts;
  readonly #checked = new Map<number, Set<number>>();

  constructor(parts: LedgerListsParts) {
    this.#parts = parts;
  }

  /** Forgets what was checked. */
  reset(): void {
    this.#checked.clear();
  }

  /**
   * One page of entries that match, in order: `limit` at most. Fewer, or none, also where it has looked as often as a call
   * may, or `signal` was aborted; it goes on after `next`.
   * @throws LedgerChanged
   */
  async find(
    workspaceId: number,
    filter: EntryFilter,
    page: EntryPage,
    signal?: AbortSignal,
  ): Promise<FoundEntries> {
    const { order, after, limit } = page;
    const reading = new Reading(this.#parts, workspaceId, this.#checkedOf(workspaceId));
    let { first, last } = await evidenceSpan(reading, filter);
    if (after !== undefined) {
      if (order === "asc") first = Math.max(first, after + 1);
      else last = Math.min(last, after - 1);
    }
    return collectPage(reading.looks(filter, { first, last, order }, limit + 1), page, signal);
  }

  /** All entries of a span that match, in order, some at a time (also none). @throws LedgerChanged */
  async *read(
    workspaceId: number,
    filter: Omit<EntryFilter, "from" | "to">,
    span: Span,
  ): AsyncGenerator<readonly StoredEntry[], void> {
    const reading = new Reading(this.#parts, workspaceId, this.#checkedOf(workspaceId));
    for await (const { entries, isLast } of reading.looks(filter, span, AT_ONCE)) {
      yield entries;
      if (!isLast) await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** The entries of a time. @throws LedgerChanged */
  async span(
    workspaceId: number,
    time: Pick<EntryFilter, "from" | "to">,
  ): Promise<{ readonly first: number; readonly last: number }> {
    // Reads some entries of many blocks, and must not have all of those count as checked.
    return evidenceSpan(new Reading(this.#parts, workspaceId, new Set()), time);
  }

  /** @throws LedgerChanged */
  async entry(workspaceId: number, seq: number): Promise<StoredEntry | undefined> {
    return new Reading(this.#parts, workspaceId, this.#checkedOf(workspaceId)).entry(seq);
  }

  #checkedOf(workspaceId: number): Set<number> {
    const known = this.#checked.get(workspaceId) ?? new Set();
    this.#checked.set(workspaceId, known);
    return known;
  }
}

/** What one call reads of a ledger, of the size that it had when the call came. */
class Reading {
  readonly size: number;
  readonly #parts: LedgerListsParts;
  readonly #workspaceId: number;
  readonly #checked: Set<number>;
  #evidence: Promise<EvidenceReader> | undefined;

  constructor(parts: LedgerListsParts, workspaceId: number, checked: Set<number>) {
    this.#parts = parts;
    this.#workspaceId = workspaceId;
    this.#checked = checked;
    this.size = parts.heads.committed(workspaceId).size;
  }

  async entry(seq: number): Promise<StoredEntry | undefined> {
    if (seq < 1 || seq > this.size) return undefined;
    const block = blockOf(seq);
    if (this.#isChecked(block)) return findEntry(this.#parts.db, this.#workspaceId, seq);
    return (await this.#check(block))[seq - 1 - block * BLOCK];
  }

  async *looks(filter: EntryFilter, wanted: Span, most: number): AsyncGenerator<Look, void> {
    const { order } = wanted;
    if (filter.task === null) return;
    const first = Math.max(wanted.first, filter.task?.dispatchSeq ?? 1);
    const last = Math.min(wanted.last, this.size);
    const isUp = order === "asc";
    const matches = entryTest({ ...filter, task: filter.task?.id });
    for (let at = isUp ? first : last; at >= first && at <= last; ) {
      const block = blockOf(at);
      if (this.#isChecked(block)) {
        const end = this.#endOfChecked(block, isUp ? 1 : -1);
        const span = isUp
          ? { first: at, last: Math.min(last, (end + 1) * BLOCK), order }
          : { first: Math.max(first, end * BLOCK + 1), last: at, order };
        for await (const look of lookThrough(this.#parts.db, this.#workspaceId, filter, span, most)) {
          yield { ...look, isLast: look.reached === (isUp ? last : first) };
        }
        at = isUp ? span.last + 1 : span.first - 1;
      } else {
        const span = isUp ? { first: at, last, order } : { first, last: at, order };
        const look = await this.#lookAtUnchecked(block, span, matches, most);
        yield { ...look, isLast: look.reached === (isUp ? last : first) };
        at = isUp ? look.reached + 1 : look.reached - 1;
      }
    }
  }

  /** Some blocks that were not checked, from one on: by their entries' bytes. */
  async #lookAtUnchecked(
    from: number,
    { first, last, order }: Span,
    matches: EntryTest,
    most: number,
  ): Promise<Omit<Look, "isLast">> {
    const isUp = order === "asc";
    const entries: StoredEntry[] = [];
    for (let count = 1, block = from; ; count++, block += isUp ? 1 : -1) {
      const found = (await this.#check(block)).filter(
        (entry) => entry.seq >= first && entry.seq <= last && matches(entry),
      );
      entries.push(...(isUp ? found : found.reverse()));
      const reached = isUp ? Math.min(last, (block + 1) * BLOCK) : Math.max(first, block * BLOCK + 1);
      const isDone = reached === (isUp ? last : first) || entries.length >= most || count === BLOCKS_AT_ONCE;
      if (isDone || this.#isChecked(block + (isUp ? 1 : -1))) return { entries, reached };
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** The last block, which has no tile yet, counts by its own sign: it is another one with each commit. */
  #isChecked(block: number): boolean {
    return this.#checked.has(this.#isLast(block) ? LAST : block);
  }

  #isLast(block: number): boolean {
    return (block + 1) * BLOCK > this.size;
  }

  /** The last of the checked blocks that follow each other from `block` on, as far as one search goes. */
  #endOfChecked(block: number, step: 1 | -1): number {
    return endOfRun(block, step, (next) => next * BLOCK < this.size && this.#isChecked(next));
  }

  /** The entries of a block, held against the signed tree, and the index against them. */
  async #check(block: number): Promise<readonly StoredEntry[]> {
    const { faults } = this.#parts;
    try {
      this.#evidence ??= this.#open();
      const entries = await (await this.#evidence).block(block);
      if (this.#isLast(block)) {
        this.#checked.add(LAST);
      } else if (await this.#isIndexed(block, entries)) {
        this.#checked.add(block);
      }
      return entries;
    } catch (error) {
      reportChanged(faults, this.#workspaceId, error);
      throw error;
    }
  }

  async #open(): Promise<EvidenceReader> {
    const { db, heads } = this.#parts;
    const signed = heads.committed(this.#workspaceId);
    return EvidenceReader.open(db, this.#workspaceId, signed);
  }

  async #isIndexed(block: number, entries: readonly StoredEntry[]): Promise<boolean> {
    const { db, faults } = this.#parts;
    const expected = [...blockBits(entries.map(({ bytes }) => parsedEntry(bytes)))];
    for (let from = 0; from < expected.length; from += KEYS) {
      const some = expected.slice(from, from + KEYS);
      const keys: (string | null)[] = some.map(([key]) => key);
      while (keys.length < KEYS) keys.push(null);
      const rows = await db.all<{ key: string; bits: Uint8Array }>(BITS, [this.#workspaceId, block, ...keys]);
      const stored = new Map(rows.map(({ key, bits }) => [key, bits]));
      const wrong = some.find(([key, bits]) => !hasAll(stored.get(key), bits));
      if (!wrong) continue;
      const [first, last] = [block * BLOCK + 1, (block + 1) * BLOCK];
      faults.report(this.#workspaceId, {
        kind: "index_changed",
        message: `the index of entries ${first} to ${last} hides entries under ${JSON.stringify(wrong[0].slice(0, 80))}; they are listed by their own bytes`,
        seq: first,
      });
      return false;
    }
    return true;
  }
}

/** The last of the blocks that follow each other from `block` on, each with `isIn`: `CHECKED_AT_ONCE` further at most. */
export function endOfRun(block: number, step: 1 | -1, isIn: (block: number) => boolean): number {
  const limit = Math.max(0, block + step * CHECKED_AT_ONCE);
  let end = block;
  while (end !== limit && isIn(end + step)) end += step;
  return end;
}

/** Among the numbers of blocks: the last one, which is not complete. */
const LAST = -1;

/** One bit too many is no lie: the entry's bytes decide. */
function hasAll(stored: Uint8Array | undefined, bits: Uint8Array): boolean {
  return stored?.length === BITS_BYTES && bits.every((byte, at) => (byte & ~(stored[at] ?? 0)) === 0);
}

/**
 * Requires that the entries of some seqs are as they were signed: for what a query has read of them together with other tables. Each
 * block of 256 is checked once in the life of a process (1 ms).
 * @throws LedgerChanged
 */
export async function requireSigned(
  lists: Pick<LedgerLists, "entry">,
  workspaceId: number,
  entries: readonly { readonly seq: number }[],
): Promise<void> {
  const blocks = new Map(entries.map(({ seq }) => [blockOf(seq), seq]));
  for (const seq of blocks.values()) await lists.entry(workspaceId, seq);
}
