import { takeTurn } from "../../base/inflow.ts";
import { SharedWork } from "../../base/shared-work.ts";
import type { Sql } from "../../store/db.ts";
import { type LedgerFaults, reportChanged } from "../faults.ts";
import type { LedgerHeads } from "../heads/heads.ts";
import type { TreeHead } from "../proof/check.ts";
import { BITS_BYTES, BLOCK, blockBits, type SeqRange } from "./block-index.ts";
import { type CheckedBlock, CheckedBlocks, seqsIn } from "./checked-blocks.ts";
import { CheckedEntries } from "./checked-entries.ts";
import { type CheckedTail, CheckedTails } from "./checked-tails.ts";
import { type EntryTest, entryTest } from "./entry-filter.ts";
import { blockOf, EvidenceReader } from "./evidence.ts";
import { evidenceSpan } from "./evidence-pages.ts";
import { parsedEntry } from "./parsed-entry.ts";
import {
  collectPage,
  type EntryFilter,
  type EntryPage,
  type EntryPageRows,
  LOOK_COST,
  type ScanResult,
  type StoredEntry,
  waysOf,
} from "./query.ts";

export interface LedgerListsParts {
  readonly db: Pick<Sql, "all" | "get">;
  readonly heads: Pick<LedgerHeads, "committed">;
  readonly faults: Pick<LedgerFaults, "report">;
}

/** Maximum number of blocks checked by one read, 1 ms each. Other work can run between two blocks. */
const UNCHECKED_AT_ONCE = 4;
/** Maximum number of checked blocks that one read scans in memory: half a million entries. */
const CHECKED_AT_ONCE = 2_048;
/** Maximum number of entries that one read of checked blocks returns. */
const AT_ONCE = 256;
/** Keys per query. */
const KEYS = 32;
const PLACES = Array.from({ length: KEYS }, (_, index) => `$${index + 3}`).join(", ");
const BITS = `SELECT key, bits FROM ledger_index WHERE workspace_id = $1 AND block = $2 AND key IN (${PLACES})`;

/**
 * Lists of entries. The bytes in the signed tree decide which entries are returned and which are left out, whatever
 * is done to the file, even if SQLite is bypassed while the server runs.
 *
 * The first list that reaches a block of 256 entries checks all of them against the signed tree, which takes 1 ms,
 * and caches the block's hash and which entries have which keys. After that only entries that may match are read, and
 * each is checked against that hash. In the last, incomplete block, the entries appended since the previous list are
 * checked (`CheckedTails`). Lists that reach an unchecked block at the same time share its check: thousands may begin
 * together, each before the first result is cached.
 */
export class LedgerLists {
  readonly #parts: LedgerListsParts;
  readonly #blocks: CheckedBlocks;
  readonly #entries: CheckedEntries;
  readonly #tails: CheckedTails;
  readonly #checks: Checked["checks"] = new SharedWork();

  constructor(parts: LedgerListsParts, blocks = new CheckedBlocks()) {
    this.#parts = parts;
    this.#blocks = blocks;
    this.#entries = new CheckedEntries(parts.db);
    this.#tails = new CheckedTails(parts.db);
  }

  /**
   * One page of matching entries in order, at most `limit`. It may contain fewer, or none, if the number of reads is
   * used up or `signal` was aborted. The next page continues after `next`.
   * @throws LedgerChanged
   */
  async find(
    workspaceId: number,
    filter: EntryFilter,
    page: EntryPage,
    signal?: AbortSignal,
  ): Promise<EntryPageRows> {
    const { order, after, limit } = page;
    const reading = await this.#reading(workspaceId);
    let { first, last } = await evidenceSpan(reading, filter);
    if (after !== undefined) {
      if (order === "asc") first = Math.max(first, after + 1);
      else last = Math.min(last, after - 1);
    }
    return collectPage(workspaceId, reading.looks(filter, { first, last, order }, limit + 1), page, signal);
  }

  /** All matching entries of a span in order, in batches that may be empty. @throws LedgerChanged */
  async *read(
    workspaceId: number,
    filter: Omit<EntryFilter, "from" | "to">,
    span: SeqRange,
  ): AsyncGenerator<readonly StoredEntry[], void> {
    const reading = await this.#reading(workspaceId);
    for await (const { entries, isLast } of reading.looks(filter, span, AT_ONCE)) {
      yield entries;
      const turn = isLast ? undefined : takeTurn(workspaceId, { bytes: LOOK_COST });
      if (turn) await turn;
    }
  }

  /** The entries of a period. @throws LedgerChanged */
  async span(
    workspaceId: number,
    time: Pick<EntryFilter, "from" | "to">,
  ): Promise<{ readonly first: number; readonly last: number }> {
    return evidenceSpan(await this.#reading(workspaceId), time);
  }

  /** @throws LedgerChanged */
  async entry(workspaceId: number, seq: number): Promise<StoredEntry | undefined> {
    return (await this.#reading(workspaceId)).entry(seq);
  }

  /** Number of entries on disk. */
  async size(workspaceId: number): Promise<number> {
    return (await this.#parts.heads.committed(workspaceId)).size;
  }

  /** Entries by seq. Seqs without an entry are omitted. @throws LedgerChanged */
  async entries(workspaceId: number, seqs: Iterable<number>): Promise<ReadonlyMap<number, StoredEntry>> {
    return (await this.#reading(workspaceId)).entries(new Set(seqs));
  }

  async #reading(workspaceId: number): Promise<ListReading> {
    const signed = await this.#parts.heads.committed(workspaceId);
    const checked = {
      ...{ blocks: this.#blocks, entries: this.#entries, tails: this.#tails },
      checks: this.#checks,
    };
    return new ListReading(this.#parts, workspaceId, signed, checked);
  }
}

/** Results of earlier checks. */
interface Checked {
  readonly blocks: CheckedBlocks;
  readonly entries: CheckedEntries;
  readonly tails: CheckedTails;
  /** Checks of complete blocks in progress. Such a block is the same in every larger tree. */
  readonly checks: SharedWork<readonly StoredEntry[]>;
}

/** One call's view of a ledger, with the size it had when the call began. */
class ListReading {
  readonly size: number;
  readonly #parts: LedgerListsParts;
  readonly #workspaceId: number;
  readonly #checked: Checked;
  readonly #signed: TreeHead;
  #tail: CheckedTail | undefined;
  #evidence: Promise<EvidenceReader> | undefined;

  constructor(parts: LedgerListsParts, workspaceId: number, signed: TreeHead, checked: Checked) {
    this.#parts = parts;
    this.#workspaceId = workspaceId;
    this.#checked = checked;
    this.#signed = signed;
    this.size = signed.size;
  }

  async entry(seq: number): Promise<StoredEntry | undefined> {
    if (seq < 1 || seq > this.size) return undefined;
    const block = blockOf(seq);
    const checked = await this.#load(block);
    if (!checked) return (await this.#check(block))[seq - 1 - block * BLOCK];
    const [entry] = await this.#readChecked([{ block, checked, seqs: [seq] }]);
    return entry;
  }

  async entries(seqs: ReadonlySet<number>): Promise<ReadonlyMap<number, StoredEntry>> {
    const byBlock = new Map<number, number[]>();
    for (const seq of seqs) {
      if (seq < 1 || seq > this.size) continue;
      const wanted = byBlock.get(blockOf(seq)) ?? [];
      wanted.push(seq);
      byBlock.set(blockOf(seq), wanted);
    }
    const found: StoredEntry[] = [];
    let unchecked = 0;
    for (const [block, wanted] of byBlock) {
      const checked = await this.#load(block);
      if (checked) {
        found.push(...(await this.#readChecked([{ block, checked, seqs: wanted }])));
        continue;
      }
      const entries = await this.#check(block);
      for (const seq of wanted) {
        const entry = entries[seq - 1 - block * BLOCK];
        if (entry) found.push(entry);
      }
      unchecked += 1;
      const turn =
        unchecked % UNCHECKED_AT_ONCE === 0 ? takeTurn(this.#workspaceId, { bytes: LOOK_COST }) : undefined;
      if (turn) await turn;
    }
    return new Map(found.map((entry) => [entry.seq, entry]));
  }

  async *looks(filter: EntryFilter, wanted: SeqRange, most: number): AsyncGenerator<ScanResult, void> {
    const { order } = wanted;
    if (filter.task === null) return;
    const first = Math.max(wanted.first, filter.task?.dispatchSeq ?? 1);
    const last = Math.min(wanted.last, this.size);
    const isUp = order === "asc";
    const matches = entryTest({ ...filter, task: filter.task?.id });
    const ways = waysOf(filter);
    // The index does not cover tasks, so only a few of the entries read may match.
    const atOnce = filter.task || filter.outsideTasks ? Math.max(most, AT_ONCE) : most;
    for (let at = isUp ? first : last; at >= first && at <= last; ) {
      const span = isUp ? { first: at, last, order } : { first, last: at, order };
      const look = (await this.#load(blockOf(at)))
        ? await this.#lookAtChecked(span, ways, matches, atOnce)
        : await this.#lookAtUnchecked(span, matches, most);
      yield { ...look, isLast: look.reached === (isUp ? last : first) };
      at = look.reached + (isUp ? 1 : -1);
    }
  }

  /** The last block, if it is incomplete. */
  #isTail(block: number): boolean {
    return block === Math.floor(this.size / BLOCK);
  }

  /** The cached facts about a block. Those of the last block are available once it was loaded. */
  #known(block: number): CheckedBlock | CheckedTail | undefined {
    return this.#isTail(block) ? this.#tail : this.#checked.blocks.get(this.#workspaceId, block);
  }

  /** The same, and checks the last block if necessary. @throws LedgerChanged */
  async #load(block: number): Promise<CheckedBlock | CheckedTail | undefined> {
    if (!this.#isTail(block)) return this.#known(block);
    try {
      this.#tail ??= await this.#checked.tails.at(this.#workspaceId, this.#signed);
      return this.#tail;
    } catch (error) {
      reportChanged(this.#parts.faults, this.#workspaceId, error);
      throw error;
    }
  }

  /** Reads checked blocks from the start of the span: finds entries that may match in memory, then reads them. */
  async #lookAtChecked(
    { first, last, order }: SeqRange,
    ways: readonly (readonly string[])[],
    matches: EntryTest,
    most: number,
  ): Promise<Omit<ScanResult, "isLast">> {
    const isUp = order === "asc";
    const step = isUp ? 1 : -1;
    const wanted: WantedEntries[] = [];
    let [reached, count] = [isUp ? first - 1 : last + 1, 0];
    for (
      let block = blockOf(isUp ? first : last), blocks = 0;
      blocks < CHECKED_AT_ONCE;
      block += step, blocks++
    ) {
      const checked = this.#known(block);
      if (!checked || reached === (isUp ? last : first) || count >= most) break;
      const found = seqsIn(checked, block, ways).filter((seq) => seq >= first && seq <= last);
      const inOrder = isUp ? found : found.toReversed();
      const seqs = inOrder.slice(0, most - count);
      count += seqs.length;
      if (seqs.length > 0) wanted.push({ block, checked, seqs });
      const end = isUp ? Math.min(last, (block + 1) * BLOCK) : Math.max(first, block * BLOCK + 1);
      reached = seqs.length < inOrder.length ? (seqs.at(-1) ?? reached) : end;
    }
    const entries = await this.#readChecked(wanted);
    return { entries: entries.filter(matches), reached };
  }

  async #readChecked(wanted: readonly WantedEntries[]): Promise<StoredEntry[]> {
    try {
      const found: StoredEntry[] = [];
      for (const { block, checked, seqs } of wanted) {
        const { entries } = this.#checked;
        const leaves =
          "leaves" in checked
            ? checked.leaves
            : ((await entries.leavesOf(this.#workspaceId, block, checked.root)) ??
              // The tile has changed since it was checked. Check the entries again.
              leavesOf(await this.#check(block)));
        found.push(...(await entries.read(this.#workspaceId, block, leaves, seqs)));
      }
      return found;
    } catch (error) {
      reportChanged(this.#parts.faults, this.#workspaceId, error);
      throw error;
    }
  }

  /** Reads some unchecked blocks from the start of the span, by their entries' bytes. */
  async #lookAtUnchecked(
    { first, last, order }: SeqRange,
    matches: EntryTest,
    most: number,
  ): Promise<Omit<ScanResult, "isLast">> {
    const isUp = order === "asc";
    const step = isUp ? 1 : -1;
    const entries: StoredEntry[] = [];
    for (let count = 1, block = blockOf(isUp ? first : last); ; count++, block += step) {
      const found = (await this.#check(block)).filter(
        (entry) => entry.seq >= first && entry.seq <= last && matches(entry),
      );
      entries.push(...(isUp ? found : found.reverse()));
      const reached = isUp ? Math.min(last, (block + 1) * BLOCK) : Math.max(first, block * BLOCK + 1);
      const isDone =
        reached === (isUp ? last : first) || entries.length >= most || count === UNCHECKED_AT_ONCE;
      if (isDone || this.#isTail(block + step) || this.#known(block + step)) return { entries, reached };
      const turn = takeTurn(this.#workspaceId, { bytes: LOOK_COST });
      if (turn) await turn;
    }
  }

  /** Checks the entries of a complete block against the signed tree, and the index against the entries. */
  #check(block: number): Promise<readonly StoredEntry[]> {
    return this.#checked.checks.run(`${this.#workspaceId}/${block}`, () => this.#checkNow(block));
  }

  async #checkNow(block: number): Promise<readonly StoredEntry[]> {
    const { faults } = this.#parts;
    try {
      this.#evidence ??= this.#open();
      const evidence = await this.#evidence;
      const entries = await evidence.block(block);
      if (entries.length === BLOCK) {
        const bits = blockBits(entries.map(({ bytes }) => parsedEntry(bytes)));
        await this.#compareIndex(block, bits);
        this.#checked.blocks.add(this.#workspaceId, block, { root: await evidence.root(block), bits });
      }
      return entries;
    } catch (error) {
      reportChanged(faults, this.#workspaceId, error);
      throw error;
    }
  }

  async #open(): Promise<EvidenceReader> {
    return EvidenceReader.open(this.#parts.db, this.#workspaceId, this.#signed);
  }

  /**
   * Lists do not use the stored index. An index that hides entries is reported, because it means that somebody has
   * changed the file.
   */
  async #compareIndex(block: number, bits: CheckedBlock["bits"]): Promise<void> {
    const { db, faults } = this.#parts;
    const expected = [...bits];
    for (let from = 0; from < expected.length; from += KEYS) {
      const some = expected.slice(from, from + KEYS);
      const keys: (string | null)[] = some.map(([key]) => key);
      while (keys.length < KEYS) keys.push(null);
      const rows = await db.all<{ key: string; bits: Uint8Array }>(BITS, [this.#workspaceId, block, ...keys]);
      const stored = new Map(rows.map((row) => [row.key, row.bits]));
      const wrong = some.find(([key, wanted]) => !hasAll(stored.get(key), wanted));
      if (!wrong) continue;
      const [first, last] = [block * BLOCK + 1, (block + 1) * BLOCK];
      faults.report(this.#workspaceId, {
        kind: "index_changed",
        message: `the index of entries ${first} to ${last} hides entries under ${JSON.stringify(wrong[0].slice(0, 80))}; they are listed by their own bytes`,
        seq: first,
      });
      return;
    }
  }
}

interface WantedEntries {
  readonly block: number;
  readonly checked: CheckedBlock | CheckedTail;
  /** In the requested order. */
  readonly seqs: readonly number[];
}

/** The concatenated leaves of a whole block. */
function leavesOf(entries: readonly StoredEntry[]): Uint8Array {
  return Buffer.concat(entries.map(({ leaf }) => leaf));
}

/** Surplus bits hide nothing: the entries' bytes decide. */
function hasAll(stored: Uint8Array | undefined, bits: Uint8Array): boolean {
  return stored?.length === BITS_BYTES && bits.every((byte, at) => (byte & ~(stored[at] ?? 0)) === 0);
}

/**
 * Requires that entries are unchanged since they were signed, if a query has read them joined with other tables.
 * @throws LedgerChanged
 */
export async function requireSigned(
  lists: Pick<LedgerLists, "entries">,
  workspaceId: number,
  entries: readonly { readonly seq: number }[],
): Promise<void> {
  await lists.entries(
    workspaceId,
    entries.map(({ seq }) => seq),
  );
}
