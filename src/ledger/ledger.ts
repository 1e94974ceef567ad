import type { Clock } from "../base/clock.ts";
import type { RandomSource } from "../base/ids.ts";
import { Signal } from "../base/signal.ts";
import { type Db, type SqlValue, StoreUnavailable, type Tx } from "../store/db.ts";
import { insertRowsSql } from "../store/many-rows.ts";
import { type Link, link, type Tail } from "./chain.ts";
import type { Draft } from "./entry.ts";
import type { LedgerHeads } from "./heads.ts";
import { keepPayloads, type Payload, type SaltedHash, saltedHash } from "./payload.ts";
import { ledgerSize } from "./query.ts";
import { completeTiles, TILE_WIDTH, tiledSize } from "./tiles.ts";

export interface Ledger {
  /**
   * Begins the ledger of a workspace. MUST come in the transaction that makes the workspace.
   * @throws StoreUnavailable when the store has rows of a ledger with this number
   */
  begin(tx: Tx, workspaceId: number): Promise<void>;
  /**
   * Appends within a transaction, so that what happened and its evidence last together or not at all.
   * @returns the entry's seq, from 1, without gaps in its workspace.
   */
  append(tx: Tx, workspaceId: number, draft: Draft): Promise<number>;
  /**
   * Appends an entry that stands alone, such as a read's; resolves once it is on disk. `admit` is asked in the entry's transaction.
   * @throws StoreUnavailable, and what `admit` throws: no entry is appended then
   */
  record(workspaceId: number, draft: Draft, admit?: Admit): Promise<number>;
  /** Tells how long a ledger has become, once that is on disk. */
  readonly grown: Signal<Grown>;
}

/** Refuses an entry by throwing. Undefined: it is admitted at once. */
export type Admit = (tx: Tx) => Promise<void> | undefined;

export interface Grown {
  readonly workspaceId: number;
  readonly size: number;
}

interface Waiting {
  readonly workspaceId: number;
  readonly draft: Draft;
  readonly admit: Admit | undefined;
  readonly resolve: (seq: number) => void;
  readonly reject: (error: unknown) => void;
}

/** Entries that may wait for the store. Each stands for a call that is held open. */
const WAITING_LIMIT = 20_000;
/** Rows in one statement where entries come in numbers. */
const ROWS = 16;

/**
 * The workspaces' chains. This process is their only writer: their tails are kept in memory (`heads`), and never read from
 * the store again. When somebody else has put an entry behind a chain, the store's guard refuses all that would follow it.
 *
 * What is recorded alone while a group waits to be written goes in as one transaction of many-row statements: 8 µs an
 * entry instead of 17 with a transaction and a statement each (64 at a time, besides encoding and hashing).
 */
export function createLedger(db: Db, clock: Clock, random: RandomSource, heads: LedgerHeads): Ledger {
  const grown = new Signal<Grown>();
  let waiting: Waiting[] = [];
  db.beforeCommit((tx) => heads.write(tx));

  function moveTail(tx: Tx, workspaceId: number, tails: readonly Tail[]): void {
    heads.move(tx, workspaceId, tails);
    const size = tails.at(-1)?.seq ?? 0;
    tx.onCommit(() => grown.emit({ workspaceId, size }));
  }

  async function append(tx: Tx, workspaceId: number, draft: Draft): Promise<number> {
    const tail = heads.tail(workspaceId);
    const { next, payloads } = sealed(workspaceId, tail, draft, clock.now());
    moveTail(tx, workspaceId, [next.tail]);
    await insert(tx, [[workspaceId, next]]);
    if (next.tail.seq % TILE_WIDTH === 0) await completeTiles(tx, workspaceId, tail.seq, next.tail.seq);
    await keepPayloads(tx, payloads);
    return next.tail.seq;
  }

  /** The entry that follows, and the texts that belong to it. @throws TypeError, RangeError as `encodeEntry` does */
  function sealed(
    workspaceId: number,
    tail: Tail,
    draft: Draft,
    at: number,
  ): { readonly next: Link; readonly payloads: readonly Payload[] } {
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

  async function appendWaiting(tx: Tx, group: readonly Waiting[]): Promise<(number | Error)[]> {
    const now = clock.now();
    const chains = new Map<number, Tail[]>();
    const links: (readonly [number, Link])[] = [];
    const texts: Payload[] = [];
    const results: (number | Error)[] = [];
    for (const { workspaceId, draft, admit } of group) {
      try {
        const asked = admit?.(tx);
        if (asked) await asked;
        const tails = chains.get(workspaceId) ?? [];
        const tail = tails.at(-1) ?? heads.tail(workspaceId);
        const { next, payloads } = sealed(workspaceId, tail, draft, now);
        tails.push(next.tail);
        chains.set(workspaceId, tails);
        links.push([workspaceId, next]);
        texts.push(...payloads);
        results.push(next.tail.seq);
      } catch (error) {
        results.push(error instanceof Error ? error : new Error(String(error)));
      }
    }
    for (const [workspaceId, tails] of chains) moveTail(tx, workspaceId, tails);
    await insert(tx, links);
    for (const [workspaceId, tails] of chains) {
      const size = heads.tail(workspaceId).seq;
      await completeTiles(tx, workspaceId, size - tails.length, size);
    }
    await keepPayloads(tx, texts);
    return results;
  }

  async function writeWaiting(): Promise<void> {
    let group: readonly Waiting[] = [];
    try {
      const results = await db.tx((tx) => {
        group = waiting;
        waiting = [];
        return appendWaiting(tx, group);
      });
      for (const [index, { resolve, reject }] of group.entries()) {
        const result = results[index];
        if (typeof result === "number") resolve(result);
        else reject(result);
      }
    } catch (error) {
      // Where the store took no transaction at all, the group is still the one that waits.
      if (group.length === 0) {
        group = waiting;
        waiting = [];
      }
      for (const { reject } of group) reject(error);
    }
  }

  return {
    begin: (tx, workspaceId) => heads.begin(tx, workspaceId),
    append,
    grown,
    record(workspaceId, draft, admit) {
      return new Promise((resolve, reject) => {
        if (waiting.length >= WAITING_LIMIT) {
          reject(new StoreUnavailable(`${WAITING_LIMIT} entries are waiting to be written already`));
          return;
        }
        waiting.push({ workspaceId, draft, admit, resolve, reject });
        if (waiting.length === 1) void writeWaiting();
      });
    },
  };
}

/** What a person decided on, and why, is said by hashes where the decision stands. */
function withHashes(
  draft: Draft,
  { input, output }: { readonly input: SaltedHash | undefined; readonly output: SaltedHash | undefined },
): Draft {
  if (!draft.oversight) return draft;
  const hashes = {
    ...(input && { arguments_hash: input.hash }),
    ...(output && { reason_hash: output.hash }),
  };
  return { ...draft, oversight: { ...draft.oversight, ...hashes } };
}

/** Blocks made in one transaction where a ledger has none yet: some 60 ms. */
const BLOCKS_AT_ONCE = 64;

/**
 * Makes the tiles and the index of entries that were written by a version without them. MUST come before anything is
 * appended.
 */
export async function completeLedger(db: Db, workspaceId: number): Promise<void> {
  const size = await ledgerSize(db, workspaceId);
  for (let from = await tiledSize(db, workspaceId); from + TILE_WIDTH <= size; ) {
    const to = Math.min(size, from + BLOCKS_AT_ONCE * TILE_WIDTH);
    await db.tx((tx) => completeTiles(tx, workspaceId, from, to));
    from = to - (to % TILE_WIDTH);
  }
}

const COLUMNS = 5;

async function insert(tx: Tx, links: readonly (readonly [workspaceId: number, Link])[]): Promise<void> {
  for (let from = 0; from < links.length; ) {
    const count = links.length - from >= ROWS ? ROWS : 1;
    const values: SqlValue[] = [];
    for (const [workspaceId, { bytes, prev, tail }] of links.slice(from, from + count)) {
      values.push(workspaceId, tail.seq, prev, tail.leaf, bytes);
    }
    await tx.run(count === ROWS ? INSERT_MANY : INSERT_ONE, values);
    from += count;
  }
}

const INTO = "ledger (workspace_id, seq, prev, leaf, bytes)";
const INSERT_ONE = insertRowsSql(INTO, COLUMNS, 1);
const INSERT_MANY = insertRowsSql(INTO, COLUMNS, ROWS);
