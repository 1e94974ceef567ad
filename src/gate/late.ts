import type { Clock } from "../base/clock.ts";
import { Problem } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { type Db, StoreUnavailable, type Tx } from "../store/db.ts";

/** Decisions that may wait for the store, a few hundred bytes each. A stop of every agent of a large workspace fits in. */
const RECORDS_LIMIT = 10_000;
const RETRY_MS = 1_000;

/** Who decided what and when, as the log says it. */
export type Facts = Readonly<Record<string, unknown>>;

/** What is still to be written of a decision that holds already. */
export interface LateRecord {
  /** Writes what was decided, and its evidence. */
  readonly write: (tx: Tx) => Promise<void>;
  /** All that is left of it, should it never be written. */
  readonly facts: Facts;
}

/**
 * Stops and cancels that took effect while the store could not be written. They are kept in memory, and written in the
 * order in which they were decided as soon as the store takes them.
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

  /** Decisions that wait. */
  get size(): number {
    return this.#records.length;
  }

  /**
   * Takes a decision to be written.
   * @throws Problem 503 `ledger_unavailable` where too many wait: the decision holds until this process ends, and only the
   *   log tells of it
   */
  keep(record: LateRecord): void {
    if (this.#records.length >= RECORDS_LIMIT) {
      this.#log.error("a decision holds that will not be recorded: too many wait", record.facts);
      throw new Problem("ledger_unavailable", "It is done, but too much waits for the ledger to record it.");
    }
    this.#records.push(record);
    this.#log.warn("a decision holds before it can be recorded", record.facts);
    this.#retrySoon();
  }

  /**
   * Writes what waits, now.
   * @throws StoreUnavailable where the store still does not take it
   */
  async flush(): Promise<void> {
    this.#writing ??= this.#write().finally(() => {
      this.#writing = null;
    });
    await this.#writing;
  }

  /** Tries a last time. What cannot be written then is told to the log, and lost. @returns how many that were */
  async stop(): Promise<number> {
    let lost = 0;
    try {
      await this.flush();
    } catch (error) {
      for (const { facts } of this.#records.splice(0)) {
        lost += 1;
        this.#log.error("a decision could not be recorded, and is lost", { ...facts, error });
      }
    }
    this.#cancel?.();
    this.#cancel = null;
    return lost;
  }

  #retrySoon(): void {
    this.#cancel ??= this.#clock.after(RETRY_MS, () => {
      this.#cancel = null;
      // That the store is still refused was told when the first of them was kept.
      this.flush().catch(() => this.#retrySoon());
    });
  }

  async #write(): Promise<void> {
    for (let next = this.#records[0]; next; next = this.#records[0]) {
      try {
        await this.#db.tx(next.write);
        this.#log.info("a decision is recorded late", next.facts);
      } catch (error) {
        if (error instanceof StoreUnavailable) throw error;
        this.#log.error("a decision cannot be recorded, and is lost", { ...next.facts, error });
      }
      this.#records.shift();
    }
  }
}
