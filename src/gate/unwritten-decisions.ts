import type { Clock } from "../base/clock.ts";
import { Problem } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { type Db, StoreUnavailable, type Tx } from "../store/db.ts";

/**
 * Maximum number of decisions waiting for the store, a few hundred bytes each. Enough to stop every agent of a large
 * workspace.
 */
const RECORDS_LIMIT = 10_000;
const RETRY_MS = 1_000;

/** Who decided what and when, for the log. */
export type DecisionFields = Readonly<Record<string, unknown>>;

/** What is still to be written for a decision that is already in effect. */
export interface LateRecord {
  /** Whose ledger gets the evidence. */
  readonly workspaceId: number;
  /** Writes the decision and its evidence. */
  readonly write: (tx: Tx) => Promise<void>;
  /** The log fields if the decision can never be written. */
  readonly facts: DecisionFields;
}

/**
 * Decisions that took effect while the store could not be written. They are kept in memory and written in order as
 * soon as the store can be written.
 */
export class LateRecords {
  readonly #db: Db;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #records: LateRecord[] = [];
  #writing: Promise<void> | null = null;
  #cancel: (() => void) | null = null;

  constructor(db: Db, clock: Clock, log: Log) {
    this.#db = db;
    this.#clock = clock;
    this.#log = log;
  }

  /** Number of waiting decisions. */
  get size(): number {
    return this.#records.length;
  }

  /**
   * Keeps a decision to be written later.
   * @throws Problem 503 `ledger_unavailable` if too many wait: the decision stays in effect until this process ends,
   *   and only the log records it
   */
  keep(record: LateRecord): void {
    if (this.#records.length >= RECORDS_LIMIT) {
      this.#log.error("a decision is in effect but will not be recorded: too many are waiting", record.facts);
      throw new Problem(
        "ledger_unavailable",
        "The decision is in effect, but it will not be recorded: too many decisions are waiting for the ledger.",
      );
    }
    this.#records.push(record);
    this.#log.warn("a decision is in effect but not recorded yet", record.facts);
    this.#retrySoon();
  }

  /** Writes waiting decisions now. @throws StoreUnavailable if the store still cannot be written */
  async flush(): Promise<void> {
    this.#writing ??= this.#write().finally(() => {
      this.#writing = null;
    });
    await this.#writing;
  }

  /** Tries one last time. Decisions that cannot be written are logged and lost. @returns the number lost */
  async stop(): Promise<number> {
    let lost = 0;
    try {
      await this.flush();
    } catch (error) {
      for (const { facts } of this.#records.splice(0)) {
        lost += 1;
        this.#log.error("a decision could not be recorded and is lost", { ...facts, error });
      }
    }
    this.#cancel?.();
    this.#cancel = null;
    return lost;
  }

  #retrySoon(): void {
    this.#cancel ??= this.#clock.after(RETRY_MS, () => {
      this.#cancel = null;
      // Not logged again: `keep` has already warned.
      this.flush().catch(() => this.#retrySoon());
    });
  }

  async #write(): Promise<void> {
    for (let next = this.#records[0]; next; next = this.#records[0]) {
      try {
        await this.#db.tx(next.workspaceId, next.write);
        this.#log.info("a decision was recorded late", next.facts);
      } catch (error) {
        if (error instanceof StoreUnavailable) throw error;
        this.#log.error("a decision cannot be recorded and is lost", { ...next.facts, error });
      }
      this.#records.shift();
    }
  }
}
