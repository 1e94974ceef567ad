import type { Log } from "../../base/log.ts";
import type { Db } from "../../store/db.ts";
import { type AddedCount, AddedCounts, addCounts } from "./counts.ts";
import { countsOf, type UsageRecord } from "./record.ts";

/**
 * The maximum number of rows kept in memory: far more than the tools called in five seconds, by however many agents.
 */
const ROW_LIMIT = 10_000;
/** Rows written per transaction; every other writer waits for it. */
const SLICE = 500;

/**
 * Counts calls that cost no credits and are made outside of tasks, such as requests for vectors. Their entries share
 * a transaction with everything recorded in the same turn, and a separate transaction for a count would make them
 * much slower. They are counted in memory and written every few seconds and at shutdown. A killed process loses the
 * last seconds: these are statistics, and the ledger is the evidence.
 */
export class UsageTally {
  readonly #db: Db;
  readonly #log: Log;
  #rows = new AddedCounts();
  /** Calls that were not counted for lack of room. */
  #lost = 0;

  constructor(db: Db, log: Log) {
    this.#db = db;
    this.#log = log;
  }

  /**
   * Counts a call. If there is no room for another row, because the store cannot be written, the call is left out and
   * a warning is logged.
   */
  note(usage: UsageRecord): void {
    for (const row of countsOf(usage)) this.#add({ workspaceId: usage.workspaceId, row });
  }

  /** Writes the counts. @throws StoreUnavailable; unwritten counts are kept for the next time */
  async flush(): Promise<void> {
    if (this.#lost > 0) this.#log.warn("calls are missing from the statistics", { calls: this.#lost });
    this.#lost = 0;
    const waiting = this.#rows.values();
    this.#rows = new AddedCounts();
    for (let start = 0; start < waiting.length; start += SLICE) {
      const slice = waiting.slice(start, start + SLICE);
      try {
        await this.#db.tx(null, async (tx) => addCounts(tx, slice));
      } catch (error) {
        for (const added of waiting.slice(start)) this.#add(added);
        throw error;
      }
    }
  }

  #add(added: AddedCount): void {
    if (this.#rows.size < ROW_LIMIT || this.#rows.has(added)) this.#rows.add(added);
    else this.#lost += added.row.count;
  }
}
