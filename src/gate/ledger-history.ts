import type { Log } from "../base/log.ts";
import type { LedgerHeads } from "../ledger/heads/heads.ts";
import { LedgerChanged } from "../ledger/ledger-changed.ts";
import { blockOf, EvidenceReader } from "../ledger/reading/evidence.ts";
import { type ParsedEntry, parsedEntry } from "../ledger/reading/parsed-entry.ts";
import type { Db, Tx } from "../store/db.ts";

export interface LedgerHistoryParts {
  readonly db: Db;
  readonly heads: Pick<LedgerHeads, "committed">;
  readonly log: Log;
  /** Whether the operator has reviewed the rows. If so, changed entries are skipped and logged instead of refused. */
  readonly acceptChanged: boolean;
}

/**
 * Minimum number of new entries after which the history is stored again: 16 blocks, which the next start reads in 16
 * ms.
 */
const STORE_AFTER = 4_096;
/** A number of entries that takes more than a second to read. */
const LONG = 250_000;
const MEANT =
  /"action":"(?:token\.|task\.dispatch"|response\.dispatch"|tool\.call|model\.call|model\.count")/;
/** Calls that callers make outside of tasks: an intent, and an outcome that is missing if the process died. */
const CALLS: ReadonlySet<string | undefined> = new Set(["tool.call", "model.call", "model.count"]);

/** The contents of an entry, as stored or as appended. */
type HistoryEntry = {
  readonly [Field in "phase" | "action" | "outcome" | "actor" | "task" | "ref" | "detail"]?:
    | ParsedEntry[Field]
    | undefined;
};

/**
 * Facts in a workspace's ledger that must be known completely at startup, because someone may have changed the rows
 * that state them: tokens that have ended, admin secrets that were configured, and tasks, responses and calls that
 * have not ended. All of these come from entries that were compared with the signed tree, or from this process's own
 * commits.
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
  /** The entry that the stored history reaches. */
  #stored = 0;

  constructor(parts: LedgerHistoryParts, workspaceId: number) {
    this.#parts = parts;
    this.#workspaceId = workspaceId;
  }

  /** Reads the stored history, and the entries after it. @throws LedgerChanged */
  async read(): Promise<void> {
    const { db, heads, acceptChanged, log } = this.#parts;
    const committed = await heads.committed(this.#workspaceId);
    const reader = await EvidenceReader.open(db, this.#workspaceId, committed);
    await this.#readNote(reader);
    if (reader.size - this.#stored > LONG) {
      log.info("reading the ledger to learn which tokens have ended; later starts read only what is new", {
        workspace: this.#workspaceId,
        entries: reader.size - this.#stored,
      });
    }
    for (let block = blockOf(this.#stored + 1); block < reader.blocks; block++) {
      try {
        for (const { seq, bytes } of await reader.block(block)) {
          if (seq > this.#stored && MEANT.test(bytes)) this.take(seq, parsedEntry(bytes));
        }
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
      }
    }
    await this.#store(reader);
  }

  /** Whether a token's row is older than its revocation, its last rotation or the last renewal. */
  isOutdated({ id, rotations }: { readonly id: string; readonly rotations: number }): boolean {
    return rotations < this.#floor || this.#revoked.has(id) || (this.#rotations.get(id) ?? 0) > rotations;
  }

  /** The number of rotations in a new token's row. */
  get firstRotations(): number {
    return Math.max(this.#floor, this.#raising);
  }

  /** How many ended tokens are remembered individually. */
  get endedTokens(): number {
    return this.#revoked.size + this.#rotations.size;
  }

  /**
   * The number of rotations that all valid rows get from a renewal in this transaction. The renewal's entry MUST
   * contain it. Tokens that are issued in the same group of transactions get it too.
   */
  raiseFloor(tx: Tx): number {
    const floor = this.#highest + 1;
    this.#raising = floor;
    tx.onRollback(() => {
      this.#raising = 0;
    });
    return floor;
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

  /** Takes an entry into account. MUST be called in the order of the entries, once each is on disk. */
  take(seq: number, { phase, action, actor, outcome, task, ref, detail }: HistoryEntry): void {
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
    const { db, heads } = this.#parts;
    const committed = await heads.committed(this.#workspaceId);
    if (committed.size - this.#stored < this.#storeAfter) return;
    await this.#store(await EvidenceReader.open(db, this.#workspaceId, committed));
  }

  /** A long history is stored less often, so that it costs each entry at most about 40 bytes. */
  get #storeAfter(): number {
    const open = this.#openTasks.size + this.#openResponses.size + this.#openCalls.size;
    return Math.max(STORE_AFTER, this.endedTokens + open);
  }

  async #store(reader: EvidenceReader): Promise<void> {
    const { db, acceptChanged } = this.#parts;
    const { size } = reader;
    if (size === 0 || (!acceptChanged && size - this.#stored < this.#storeAfter)) return;
    const leaf = Buffer.from((await reader.entry(size))?.leaf ?? []).toString("hex");
    // May include entries committed after `size`: reading those again leads to the same result.
    const history: HistoryNote = {
      ...{ size, leaf, revoked: [...this.#revoked], rotations: [...this.#rotations] },
      ...{ configured: [...this.#configured], openTasks: [...this.#openTasks] },
      ...{ openCalls: [...this.#openCalls], floor: this.#floor, highest: this.#highest },
      openResponses: [...this.#openResponses],
    };
    const note = { key: this.#key, value: JSON.stringify(history) };
    await db.run(
      `INSERT INTO meta (key, value, seal) VALUES ($1, $2, $3)
       ON CONFLICT (key) DO UPDATE SET value = excluded.value, seal = excluded.seal`,
      [note.key, note.value, db.seals.of("meta", note)],
    );
    this.#stored = size;
  }

  /**
   * Adopts the stored history if it belongs to this ledger. Each leaf covers all entries before it, so equal leaves
   * mean that the ledger was the same up to there. A note restored from a ledger that took a different course is not
   * adopted.
   */
  async #readNote(reader: EvidenceReader): Promise<void> {
    const { db } = this.#parts;
    const row = await db.get<{ key: string; value: string; seal: Uint8Array | null }>(
      "SELECT key, value, seal FROM meta WHERE key = $1",
      [this.#key],
    );
    if (!row || !db.seals.fits("meta", row)) return;
    const note = JSON.parse(row.value) as HistoryNote;
    const { size, leaf, revoked, rotations, configured, openTasks, openCalls, floor, highest } = note;
    // The note was written by a version that did not store calls or renewals in it.
    if (!openCalls || floor === undefined || highest === undefined) return;
    const entry = await reader.entry(size);
    if (!entry || Buffer.from(entry.leaf).toString("hex") !== leaf) return;
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

/** The stored history. */
interface HistoryNote {
  /** The entry that it reaches, and that entry's leaf in hex. */
  readonly size: number;
  readonly leaf: string;
  readonly revoked: readonly string[];
  /** Ids with the number of their last rotation. */
  readonly rotations: readonly (readonly [string, number])[];
  /** See `configuredId`. */
  readonly configured: readonly string[];
  /** Ids with the entry that dispatched them. */
  readonly openTasks: readonly (readonly [string, number])[];
  /** Undefined in notes from earlier versions. */
  readonly openCalls?: readonly number[] | undefined;
  readonly openResponses?: readonly number[] | undefined;
  /** Also undefined in notes from earlier versions. */
  readonly floor?: number | undefined;
  readonly highest?: number | undefined;
}
