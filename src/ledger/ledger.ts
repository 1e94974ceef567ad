import type { Clock } from "../base/clock.ts";
import type { RandomSource } from "../base/ids.ts";
import { Signal } from "../base/signal.ts";
import { type Db, type SqlValue, StoreUnavailable, type Tx } from "../store/db.ts";
import { insertRowsSql } from "../store/many-rows.ts";
import { type ChainedEntry, link, type Tail } from "./chain.ts";
import type { EntryDraft } from "./entry.ts";
import type { LedgerHeads } from "./heads/heads.ts";
import { keepPayloads, type Payload, type SaltedHash, saltedHash } from "./payload.ts";
import { ledgerSize } from "./reading/query.ts";
import { completeTiles, TILE_WIDTH, tiledSize } from "./tiles.ts";

export interface Ledger {
  /**
   * Begins the ledger of a workspace. MUST run in the transaction that creates the workspace.
   * @throws StoreUnavailable if the store has rows of a ledger with this number
   */
  begin(tx: Tx, workspaceId: number): Promise<void>;
  /**
   * Appends within a transaction, so an event and its evidence are stored together or not at all. The transaction MUST
   * have been opened for this ledger (`Tx.ledgers`).
   * @returns the entry's seq: counted from 1, without gaps in its workspace.
   */
  append(tx: Tx, workspaceId: number, draft: EntryDraft): Promise<number>;
  /**
   * Appends an entry on its own, such as that of a read. Resolves once it is on disk. `admit` runs in the entry's
   * transaction.
   * @throws StoreUnavailable, and whatever `admit` throws; no entry is appended then
   */
  record(workspaceId: number, draft: EntryDraft, admit?: Admit): Promise<number>;
  /** Emits a ledger's new size once it is on disk. */
  readonly grown: Signal<LedgerGrowth>;
  /** Emits each entry once it is on disk, in the order of its ledger. */
  readonly appended: Signal<Appended>;
  /** Emits each entry before it is appended. A listener that throws refuses it, and no other entry. */
  readonly requested: Signal<Requested>;
  /** Emits each entry in its transaction. */
  readonly appending: Signal<Appended & { readonly tx: Tx }>;
}

/** Refuses an entry by throwing. Undefined means that it is admitted at once. */
export type Admit = (tx: Tx) => Promise<void> | undefined;

export interface LedgerGrowth {
  readonly workspaceId: number;
  readonly size: number;
}

export interface Appended {
  readonly workspaceId: number;
  readonly seq: number;
  readonly draft: EntryDraft;
}

/** An entry that is to be appended in this transaction. */
export type Requested = Omit<Appended, "seq"> & { readonly tx: Tx };

interface QueuedEntry {
  readonly draft: EntryDraft;
  readonly admit: Admit | undefined;
  readonly resolve: (seq: number) => void;
  readonly reject: (error: unknown) => void;
}

/** Maximum number of entries that may wait for the store. Each belongs to an open call. */
const WAITING_LIMIT = 20_000;
/** Entries recorded on their own, and characters of their texts, that one transaction writes at most. */
const ENTRIES_AT_ONCE = 1_024;
const CHARACTERS_AT_ONCE = 1024 * 1024;
/** Rows per statement if there are many entries. */
const ROWS = 16;

/**
 * The chains of all workspaces. An entry is appended to the signed end of its ledger (`heads`), never to what the store
 * contains besides.
 *
 * Entries of a ledger that are recorded on their own while a group of them waits to be written are stored in one
 * transaction with multi-row statements: 8 µs per entry instead of 17 with one transaction and one statement each (64
 * at a time, without encoding and hashing).
 */
export function createLedger(db: Db, clock: Clock, random: RandomSource, heads: LedgerHeads): Ledger {
  const grown = new Signal<LedgerGrowth>();
  const appended = new Signal<Appended>();
  const requested = new Signal<Requested>();
  const appending = new Signal<Appended & { readonly tx: Tx }>();
  /** By workspace; a ledger for which nothing waits has no queue. */
  const waiting = new Map<number, QueuedEntry[]>();
  let waitingCount = 0;

  function moveTail(
    tx: Tx,
    workspaceId: number,
    tails: readonly Tail[],
    drafts: readonly EntryDraft[],
  ): void {
    heads.move(tx, workspaceId, tails);
    const size = tails.at(-1)?.seq ?? 0;
    if (appending.isListened) {
      for (const [index, draft] of drafts.entries()) {
        appending.emit({ tx, workspaceId, seq: size - drafts.length + index + 1, draft });
      }
    }
    tx.onCommit(() => {
      for (const [index, draft] of drafts.entries()) {
        appended.emit({ workspaceId, seq: size - drafts.length + index + 1, draft });
      }
      grown.emit({ workspaceId, size });
    });
  }

  async function append(tx: Tx, workspaceId: number, draft: EntryDraft): Promise<number> {
    if (requested.isListened) requested.emit({ tx, workspaceId, draft });
    const tail = heads.tail(tx, workspaceId);
    const { next, payloads } = sealed(workspaceId, tail, draft, clock.now());
    moveTail(tx, workspaceId, [next.tail], [draft]);
    insert(tx, workspaceId, [next]);
    if (next.tail.seq % TILE_WIDTH === 0) await completeTiles(tx, workspaceId, tail.seq, next.tail.seq);
    keepPayloads(tx, payloads);
    return next.tail.seq;
  }

  /** The next entry, and the texts that belong to it. @throws TypeError, RangeError as `encodeEntry` does */
  function sealed(
    workspaceId: number,
    tail: Tail,
    draft: EntryDraft,
    at: number,
  ): { readonly next: ChainedEntry; readonly payloads: readonly Payload[] } {
    const { input, output } = draft;
    if (input === undefined && output === undefined) return { next: link(tail, draft, at), payloads: [] };
    const salted = {
      input: input === undefined ? undefined : saltedHash(input, random),
      output: output === undefined ? undefined : saltedHash(output, random),
    };
    const next = link(tail, withHashes(draft, salted), at, {
      input: salted.input?.hash,
      output: salted.output?.hash,
    });
    const { seq, ts: now } = next.tail;
    const payloads: Payload[] = [];
    for (const kind of ["input", "output"] as const) {
      const [text, salt] = [draft[kind], salted[kind]?.salt];
      if (text !== undefined && salt) payloads.push({ workspaceId, seq, kind, salt, text, now });
    }
    return { next, payloads };
  }

  async function appendWaiting(
    tx: Tx,
    workspaceId: number,
    group: readonly QueuedEntry[],
  ): Promise<(number | Error)[]> {
    const now = clock.now();
    const links: ChainedEntry[] = [];
    const drafts: EntryDraft[] = [];
    const texts: Payload[] = [];
    const results: (number | Error)[] = [];
    for (const { draft, admit } of group) {
      try {
        const asked = admit?.(tx);
        if (asked) await asked;
        if (requested.isListened) requested.emit({ tx, workspaceId, draft });
        const { next, payloads } = sealed(
          workspaceId,
          links.at(-1)?.tail ?? heads.tail(tx, workspaceId),
          draft,
          now,
        );
        links.push(next);
        drafts.push(draft);
        texts.push(...payloads);
        results.push(next.tail.seq);
      } catch (error) {
        results.push(error instanceof Error ? error : new Error(String(error)));
      }
    }
    if (links.length === 0) return results;
    moveTail(
      tx,
      workspaceId,
      links.map(({ tail }) => tail),
      drafts,
    );
    insert(tx, workspaceId, links);
    const size = heads.tail(tx, workspaceId).seq;
    await completeTiles(tx, workspaceId, size - links.length, size);
    keepPayloads(tx, texts);
    return results;
  }

  /** Takes entries that wait for one ledger. If it leaves any, they are written by a transaction of their own. */
  function takeGroup(workspaceId: number): readonly QueuedEntry[] {
    const queue = waiting.get(workspaceId) ?? [];
    let [count, characters] = [0, 0];
    for (const { draft } of queue) {
      if (count === ENTRIES_AT_ONCE || characters >= CHARACTERS_AT_ONCE) break;
      count += 1;
      characters += (draft.input?.length ?? 0) + (draft.output?.length ?? 0);
    }
    const group = queue.splice(0, count);
    waitingCount -= group.length;
    if (queue.length > 0) void writeWaiting(workspaceId);
    else waiting.delete(workspaceId);
    return group;
  }

  async function writeWaiting(workspaceId: number): Promise<void> {
    let group: readonly QueuedEntry[] | undefined;
    try {
      const results = await db.tx(workspaceId, (tx) => {
        // Taken once, although the work may run again.
        group ??= takeGroup(workspaceId);
        return appendWaiting(tx, workspaceId, group);
      });
      for (const [index, { resolve, reject }] of (group ?? []).entries()) {
        const result = results[index];
        if (typeof result === "number") resolve(result);
        else reject(result);
      }
    } catch (error) {
      // If the store could not begin a transaction, the group is still in `waiting`.
      group ??= takeAll(workspaceId);
      for (const { reject } of group) reject(error);
    }
  }

  function takeAll(workspaceId: number): readonly QueuedEntry[] {
    const queue = waiting.get(workspaceId) ?? [];
    waiting.delete(workspaceId);
    waitingCount -= queue.length;
    return queue;
  }

  return {
    async begin(tx, workspaceId) {
      await heads.begin(tx, workspaceId);
      tx.ledgers.push(workspaceId);
    },
    append,
    grown,
    appended,
    ...{ requested, appending },
    record(workspaceId, draft, admit) {
      return new Promise((resolve, reject) => {
        if (waitingCount >= WAITING_LIMIT) {
          reject(new StoreUnavailable(`${WAITING_LIMIT} entries are already waiting to be written`));
          return;
        }
        const entry = { draft, admit, resolve, reject };
        waitingCount += 1;
        const queue = waiting.get(workspaceId);
        if (queue) queue.push(entry);
        else {
          waiting.set(workspaceId, [entry]);
          void writeWaiting(workspaceId);
        }
      });
    },
  };
}

/** Adds to a decision the hashes of what was decided on and of the reason. */
function withHashes(
  draft: EntryDraft,
  { input, output }: { readonly input: SaltedHash | undefined; readonly output: SaltedHash | undefined },
): EntryDraft {
  if (!draft.oversight) return draft;
  const hashes = {
    ...(input && { arguments_hash: input.hash }),
    ...(output && { reason_hash: output.hash }),
  };
  return { ...draft, oversight: { ...draft.oversight, ...hashes } };
}

/** Blocks created per transaction if a ledger has none yet: about 60 ms. */
const BLOCKS_AT_ONCE = 64;

/**
 * Creates the tiles and the index of entries written by a version without them. MUST run before anything is appended.
 */
export async function completeLedger(db: Db, workspaceId: number): Promise<void> {
  const size = await ledgerSize(db, workspaceId);
  for (let from = await tiledSize(db, workspaceId); from + TILE_WIDTH <= size; ) {
    const to = Math.min(size, from + BLOCKS_AT_ONCE * TILE_WIDTH);
    await db.tx(workspaceId, (tx) => completeTiles(tx, workspaceId, from, to));
    from = to - (to % TILE_WIDTH);
  }
}

const COLUMNS = 5;

function insert(tx: Tx, workspaceId: number, links: readonly ChainedEntry[]): void {
  for (let from = 0; from < links.length; ) {
    const count = links.length - from >= ROWS ? ROWS : 1;
    const values: SqlValue[] = [];
    for (const { bytes, prev, tail } of links.slice(from, from + count)) {
      values.push(workspaceId, tail.seq, prev, tail.leaf, bytes);
    }
    tx.write(count === ROWS ? INSERT_MANY : INSERT_ONE, values);
    from += count;
  }
}

const INTO = "ledger (workspace_id, seq, prev, leaf, bytes)";
const INSERT_ONE = insertRowsSql(INTO, COLUMNS, 1);
const INSERT_MANY = insertRowsSql(INTO, COLUMNS, ROWS);
