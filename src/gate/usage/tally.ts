import type { Log } from "../../base/log.ts";
import type { Db } from "../../store/db.ts";
import { addCount, countsOf, type UsageCount, type UsageRecord } from "./record.ts";

/**
 * The maximum number of rows kept in memory: far more than the tools called in five seconds, by however many agents.
 */
const ROW_LIMIT = 10_000;
/** Rows written per transaction; every other writer waits for it. */
const SLICE = 500;

interface PendingCount {
  readonly workspaceId: number;
  row: UsageCount;
}

/**
 * Counts calls that cost no credits and are made outside of tasks, such as requests for vectors. Their entries share
 * a transaction with everything recorded in the same turn, and a separate transaction for a count would make them
 * much slower. They are counted in memory and written every few seconds and at shutdown. A killed process loses the
 * last seconds: these are statistics, and the ledger is the evidence.
 */
export class UsageTally {
  readonly #db: Db;
  readonly #log: Log;
  #rows = new Map<string, PendingCount>();
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
    for (const row of countsOf(usage)) this.#add(usage.workspaceId, row);
  }

  /** Writes the counts. @throws StoreUnavailable; unwritten counts are kept for the next time */
  async flush(): Promise<void> {
    if (this.#lost > 0) this.#log.warn("calls are missing from the statistics", { calls: this.#lost });
    this.#lost = 0;
    const waiting = [...this.#rows.values()];
    this.#rows = new Map();
    for (let start = 0; start < waiting.length; start += SLICE) {
      const slice = waiting.slice(start, start + SLICE);
      try {
        await this.#db.tx(async (tx) => {
          for (const { workspaceId, row } of slice) await addCount(tx, workspaceId, row);
        });
      } catch (error) {
        for (const { workspaceId, row } of waiting.slice(start)) this.#add(workspaceId, row);
        throw error;
      }
    }
  }

  #add(workspaceId: number, row: UsageCount): void {
    const { slot, agentId, kind, name, outcome, bucket } = row;
    const key = `${workspaceId} ${slot} ${agentId} ${kind} ${outcome} ${bucket} ${name}`;
    const known = this.#rows.get(key);
    if (known) known.row = sumOf(known.row, row);
    else if (this.#rows.size < ROW_LIMIT) this.#rows.set(key, { workspaceId, row });
    else this.#lost += row.count;
  }
}

/** The sum of two rows with the same key. */
function sumOf(one: UsageCount, other: UsageCount): UsageCount {
  return {
    ...one,
    count: one.count + other.count,
    credits: one.credits + other.credits,
    inputTokens: one.inputTokens + other.inputTokens,
    outputTokens: one.outputTokens + other.outputTokens,
  };
}
