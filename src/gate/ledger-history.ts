import type { Log } from "../base/log.ts";
import type { LedgerHeads } from "../ledger/heads/heads.ts";
import { LedgerChanged } from "../ledger/ledger-changed.ts";
import type { TreeHead } from "../ledger/proof/check.ts";
import type { GrowingTree } from "../ledger/proof/tree.ts";
import { appendedSince } from "../ledger/reading/appended.ts";
import { blockOf, EvidenceReader } from "../ledger/reading/evidence.ts";
import { type ParsedEntry, parsedEntry } from "../ledger/reading/parsed-entry.ts";
import { TILE_WIDTH } from "../ledger/tiles.ts";
import type { Db, Tx } from "../store/db.ts";
import { type HistoryNote, isOf, storedNote, writeNote } from "./ledger-history-note.ts";

export interface LedgerHistoryParts {
  readonly db: Db;
  readonly heads: Pick<LedgerHeads, "committed" | "current">;
  readonly log: Log;
  /** Whether the operator has reviewed the rows. If so, changed entries are skipped and logged instead of refused. */
  readonly acceptChanged: boolean;
  /** Whether other nodes append to the ledgers as well. */
  readonly isShared?: boolean;
  /** Called with each entry that a history takes into account. MUST NOT throw. */
  readonly onTake?: (workspaceId: number, seq: number, entry: HistoryEntry) => void;
}

/**
 * Minimum number of new entries after which the history is stored again: 16 blocks, which the next start reads in 16
 * ms.
 */
const STORE_AFTER = 4_096;
/** A number of entries that takes more than a second to read. */
const LONG = 250_000;
/**
 * At most this many new entries are read by themselves, without the block that they are in. With other nodes, a history is
 * read several times a second, and used to read its last block each time: 20 rows for each entry.
 */
const FEW = TILE_WIDTH;
const MEANT =
  /"action":"(?:token\.|task\.dispatch"|response\.dispatch"|tool\.call|model\.call|model\.count")/;
/** Calls that callers make outside of tasks: an intent, and an outcome that is missing if the process died. */
const CALLS: ReadonlySet<string | undefined> = new Set(["tool.call", "model.call", "model.count"]);

/** Whether an entry belongs to a call outside of tasks. A task's calls are found through the task. */
export function isDirectCall({ action, task }: Pick<HistoryEntry, "action" | "task">): boolean {
  return CALLS.has(action) && task === undefined;
}

/** The contents of an entry, as stored or as appended. */
export type HistoryEntry = {
  readonly [Field in "phase" | "action" | "outcome" | "actor" | "task" | "ref" | "detail"]?:
    | ParsedEntry[Field]
    | undefined;
} & {
  readonly requestId?: string | undefined;
};

/**
 * Facts in a workspace's ledger that must be known completely at startup, because someone may have changed the rows
 * that state them: tokens that have ended, admin secrets that were configured, and tasks, responses and calls that
 * have not ended. All of these come from entries that were compared with the signed tree, or from this process's own
 * commits.
 *
 * Every entry counts once, in the order of the ledger. Entries that this process appends are taken as they are committed,
 * as long as none is missing before them. `catchUp` reads those that other nodes have appended.
 *
 * The history is stored in a note with the number of the last entry that it covers, so startup need not read every
 * entry. If someone deletes that note or restores an older one, the start reads more entries and reaches the same
 * result.
 */
export class LedgerHistory {
  readonly #parts: LedgerHistoryParts;
  readonly #workspaceId: number;
  readonly #revoked = new Set<string>();
  readonly #rotations = new Map<string, number>();
  /** Rows with fewer rotations are older than the last renewal: see `TokenRenewal`. */
  #floor = 0;
  /** No row has ever had more rotations. */
  #highest = 0;
  /** A new floor, until its entry is committed. */
  #raising = 0;
  readonly #configured = new Set<string>();
  /** Tasks without an end, with the entry that dispatched them. */
  readonly #openTasks = new Map<string, number>();
  /** Entries that dispatched background responses and have no outcome. */
  readonly #openResponses = new Set<number>();
  /** Intents of calls outside of tasks that have no outcome. */
  readonly #openCalls = new Set<number>();
  /** The history is complete up to this entry. */
  #covered = 0;
  /** The entry that the stored history reaches. */
  #stored = 0;
  /** Whether the stored history has been adopted, if it can be. */
  #hasReadNote = false;
  /** The tree of the entries up to the last one that was read. Those that this process appended since are missing. */
  #checkedTree: GrowingTree | null = null;
  /** The last read of entries, which run one after another. */
  #reading: Promise<void> = Promise.resolve();

  constructor(parts: LedgerHistoryParts, workspaceId: number) {
    this.#parts = parts;
    this.#workspaceId = workspaceId;
  }

  /** Reads the stored history and the entries after it, and stores it again. @throws LedgerChanged */
  async read(): Promise<void> {
    await this.catchUp();
    await this.#store();
  }

  /**
   * Resolves once the history includes every entry that was on disk when it was called, whichever node appended it.
   * @throws LedgerChanged if entries after those that the history covers were changed
   * @throws StoreUnavailable
   */
  async catchUp(): Promise<void> {
    const committed = await this.#parts.heads.committed(this.#workspaceId);
    if (committed.size <= this.#covered) return;
    const read = this.#reading.then(() => this.#readTo(committed));
    this.#reading = read.catch(() => {});
    await read;
  }

  /** Whether it includes all entries up to this one. */
  covers(seq: number): boolean {
    return seq <= this.#covered;
  }

  async #readTo(committed: TreeHead): Promise<void> {
    if (committed.size <= this.#covered || (await this.#readAppended(committed))) return;
    const { db, acceptChanged, log } = this.#parts;
    const reader = await EvidenceReader.open(db, this.#workspaceId, committed);
    if (!this.#hasReadNote && this.#covered === 0) await this.#readNote(reader);
    if (reader.size - this.#covered > LONG) {
      log.info("reading the ledger to learn which tokens have ended; later starts read only what is new", {
        workspace: this.#workspaceId,
        entries: reader.size - this.#covered,
      });
    }
    // Entries that this process appends while it reads are taken as well, so the next block depends on `#covered`.
    while (this.#covered < reader.size) {
      const block = blockOf(this.#covered + 1);
      try {
        for (const { seq, bytes } of await reader.block(block)) this.#takeStored(seq, bytes);
      } catch (error) {
        if (!acceptChanged || !(error instanceof LedgerChanged)) throw error;
        log.error("tokens that these entries revoked may be valid again", {
          workspace: this.#workspaceId,
          problem: error.message,
        });
        // Their ends may be among these entries.
        this.#openTasks.clear();
        this.#openResponses.clear();
        this.#openCalls.clear();
        this.#covered = Math.min(reader.size, (block + 1) * TILE_WIDTH);
      }
    }
    this.#checkedTree = reader.tree;
  }

  /** Reads what was appended since the last read. @returns false if there are too many new entries, or one was changed */
  async #readAppended(committed: TreeHead): Promise<boolean> {
    const before = this.#checkedTree;
    if (!before || committed.size - before.size > FEW) return false;
    const appended = await appendedSince(this.#parts.db, this.#workspaceId, before, committed);
    if (!appended) return false;
    for (const { seq, bytes } of appended.entries) this.#takeStored(seq, bytes);
    this.#checkedTree = appended.tree;
    return true;
  }

  #takeStored(seq: number, bytes: string): void {
    if (seq > this.#covered) this.take(seq, MEANT.test(bytes) ? historyEntry(bytes) : {});
  }

  /** Whether a token's row is older than its revocation, its last rotation or the last renewal. */
  isOutdated({ id, rotations }: { readonly id: string; readonly rotations: number }): boolean {
    return rotations < this.#floor || this.#revoked.has(id) || (this.#rotations.get(id) ?? 0) > rotations;
  }

  /** The number of rotations in the row of a token that this transaction, opened for the workspace's ledger, creates. */
  async firstRotations(tx: Tx): Promise<number> {
    return Math.max(this.#floor, this.#raising, (await this.#readUnseen(tx)).floor);
  }

  /** How many ended tokens are remembered individually. */
  get endedTokens(): number {
    return this.#revoked.size + this.#rotations.size;
  }

  /**
   * The number of rotations that all valid rows get from a renewal in this transaction. The renewal's entry MUST
   * contain it. Tokens that are issued in the same group of transactions get it too.
   */
  async raiseFloor(tx: Tx): Promise<number> {
    const floor = Math.max(this.#highest, (await this.#readUnseen(tx)).highest) + 1;
    this.#raising = floor;
    tx.onRollback(() => {
      this.#raising = 0;
    });
    return floor;
  }

  /**
   * The numbers of rotations in entries that the transaction sees and this history lacks, because other nodes have just
   * appended them.
   */
  async #readUnseen(tx: Tx): Promise<{ readonly floor: number; readonly highest: number }> {
    let [floor, highest] = [0, 0];
    const covered = this.#covered;
    const current = this.#parts.isShared ? this.#parts.heads.current(tx, this.#workspaceId) : null;
    if (!current || current.size <= covered) return { floor, highest };
    const reader = await EvidenceReader.open(tx, this.#workspaceId, current);
    for (let block = blockOf(covered + 1); block < reader.blocks; block++) {
      for (const { seq, bytes } of await reader.block(block)) {
        if (seq <= covered || !bytes.includes('"action":"token.')) continue;
        const { action, outcome, detail } = parsedEntry(bytes);
        if (outcome !== "succeeded") continue;
        if (action === "token.renew") floor = Math.max(floor, Number(detail?.floor ?? 0));
        if (action === "token.rotate") highest = Math.max(highest, Number(detail?.rotation ?? 0));
      }
    }
    return { floor, highest: Math.max(floor, highest) };
  }

  /** Whether the ledger records anything that a token's row could contradict. */
  get hasEndedTokens(): boolean {
    return this.#floor > 0 || this.endedTokens > 0;
  }

  /** Whether a start has ever installed an admin secret. */
  get hasAdmin(): boolean {
    return this.#configured.size > 0;
  }

  /** Whether a configured admin secret was installed once, by its `configuredId`. */
  wasConfigured(id: string): boolean {
    return this.#configured.has(id);
  }

  /** Tasks that were dispatched and have no end, with the entry that dispatched them. */
  get openTasks(): ReadonlyMap<string, number> {
    return this.#openTasks;
  }

  /** Entries that dispatched background responses and have no outcome. */
  get openResponses(): ReadonlySet<number> {
    return this.#openResponses;
  }

  /** Intents of tool and model calls outside of tasks that have no outcome. */
  get openCalls(): ReadonlySet<number> {
    return this.#openCalls;
  }

  /**
   * Takes an entry that is on disk into account. It has no effect if an earlier entry is missing, or if it was taken
   * before.
   */
  take(seq: number, entry: HistoryEntry): void {
    if (seq !== this.#covered + 1) return;
    this.#covered = seq;
    this.#add(seq, entry);
    this.#parts.onTake?.(this.#workspaceId, seq, entry);
  }

  #add(seq: number, { phase, action, actor, outcome, task, ref, detail }: HistoryEntry): void {
    if (action === "task.dispatch") {
      if (task === undefined) return;
      if (phase === "intent") this.#openTasks.set(task, seq);
      else if (phase === "outcome" && this.#openTasks.get(task) === ref) this.#openTasks.delete(task);
      return;
    }
    if (action === "response.dispatch") {
      if (phase === "intent") this.#openResponses.add(seq);
      else if (phase === "outcome" && ref !== undefined) this.#openResponses.delete(ref);
      return;
    }
    if (CALLS.has(action)) {
      // A task's calls are found through the task.
      if (phase === "intent" && task === undefined) this.#openCalls.add(seq);
      else if (phase === "outcome" && ref !== undefined) this.#openCalls.delete(ref);
      return;
    }
    if (outcome !== "succeeded" || !detail) return;
    const { token, rotation, configured, floor } = detail;
    if (action === "token.renew" && actor === "system" && typeof floor === "number") this.#setFloor(floor);
    if (actor === "system" && typeof configured === "string") this.#configured.add(configured);
    if (typeof token !== "string") return;
    if (action === "token.revoke") this.#addRevoked(token);
    else if (action === "token.rotate" && typeof rotation === "number") this.#addRotated(token, rotation);
  }

  #addRevoked(id: string): void {
    this.#revoked.add(id);
    this.#rotations.delete(id);
  }

  /** The rows of all tokens that ended before have fewer rotations, so those tokens need not be remembered. */
  #setFloor(floor: number): void {
    this.#floor = Math.max(this.#floor, floor);
    this.#highest = Math.max(this.#highest, floor);
    this.#raising = 0;
    this.#revoked.clear();
    this.#rotations.clear();
  }

  #addRotated(id: string, rotations: number): void {
    this.#highest = Math.max(this.#highest, rotations);
    if (this.#revoked.has(id)) return;
    this.#rotations.set(id, Math.max(rotations, this.#rotations.get(id) ?? 0));
  }

  /** Stores the history if enough entries have been added since. @throws LedgerChanged */
  async keep(): Promise<void> {
    if (this.#covered - this.#stored < this.#storeAfter) return;
    await this.read();
  }

  /** A long history is stored less often, so that it costs each entry at most about 40 bytes. */
  get #storeAfter(): number {
    const open = this.#openTasks.size + this.#openResponses.size + this.#openCalls.size;
    return Math.max(STORE_AFTER, this.endedTokens + open);
  }

  async #store(): Promise<void> {
    const { db, heads, acceptChanged } = this.#parts;
    const size = this.#covered;
    if (size === 0 || (!acceptChanged && size - this.#stored < this.#storeAfter)) return;
    const reader = await EvidenceReader.open(db, this.#workspaceId, await heads.committed(this.#workspaceId));
    const before = await storedNote(db, this.#key);
    if (before && before.note.size > size && (await isOf(reader, before.note))) {
      this.#stored = before.note.size;
      return;
    }
    const leaf = Buffer.from((await reader.entry(size))?.leaf ?? []).toString("hex");
    // May include entries committed after `size`: reading those again leads to the same result.
    const history: HistoryNote = {
      ...{ size, leaf, revoked: [...this.#revoked], rotations: [...this.#rotations] },
      ...{ configured: [...this.#configured], openTasks: [...this.#openTasks] },
      ...{ openCalls: [...this.#openCalls], floor: this.#floor, highest: this.#highest },
      openResponses: [...this.#openResponses],
    };
    const value = JSON.stringify(history);
    const isStored = await db.tx(null, (tx) => writeNote(tx, this.#key, before?.value, value), {
      turnOf: this.#workspaceId,
    });
    if (isStored) this.#stored = size;
  }

  /**
   * Adopts the stored history if it belongs to this ledger. A note restored from a ledger that took a different course is
   * not adopted.
   */
  async #readNote(reader: EvidenceReader): Promise<void> {
    const stored = await storedNote(this.#parts.db, this.#key);
    this.#hasReadNote = true;
    if (!stored || !(await isOf(reader, stored.note))) return;
    const { note } = stored;
    const { size, revoked, rotations, configured, openTasks, openCalls, floor, highest } = note;
    // The note was written by a version that did not store calls or renewals in it.
    if (!openCalls || floor === undefined || highest === undefined) return;
    // Entries were taken while the note was being read, from the first one on.
    if (this.#covered > 0) return;
    this.#covered = size;
    this.#stored = size;
    this.#floor = floor;
    this.#highest = highest;
    for (const id of revoked) this.#addRevoked(id);
    for (const [id, count] of rotations) this.#addRotated(id, count);
    for (const id of configured) this.#configured.add(id);
    for (const [id, seq] of openTasks) this.#openTasks.set(id, seq);
    for (const seq of openCalls) this.#openCalls.add(seq);
    for (const seq of note.openResponses ?? []) this.#openResponses.add(seq);
  }

  get #key(): string {
    return `ledger_history:${this.#workspaceId}`;
  }
}

function historyEntry(bytes: string): HistoryEntry {
  const entry = parsedEntry(bytes);
  return { ...entry, requestId: entry.request_id };
}
