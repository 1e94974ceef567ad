import { cappedMicros } from "../base/credits.ts";
import type { Sql, Tx } from "../store/db.ts";
import { monthOf, spentThisMonth } from "./spending.ts";

interface MonthTotal {
  readonly month: string;
  /** Micro-credits. */
  micros: number;
}

/** What workspaces have spent this month (UTC), in micro-credits. Every paid call of a workspace with a budget asks for it. */
export interface MonthTotals {
  /** May include charges that are not committed yet. */
  find(sql: Pick<Sql, "get">, workspaceId: number, now: number): Promise<number>;
  /** As this transaction sees it. */
  findIn(tx: Tx, workspaceId: number, now: number): Promise<number>;
  /** MUST be called in the transaction that records the spending, after it. */
  add(tx: Tx, workspaceId: number, now: number, micros: number): void;
}

/**
 * Totals kept in memory. The table has a row for each agent and day: with 1,000 agents, their sum took 2.5 ms at the end
 * of a month. Only this process charges calls, so a sum that was read once stays known.
 */
export class LocalMonthTotals implements MonthTotals {
  readonly #totals = new Map<number, MonthTotal>();

  /** A sum read here is not kept, since a transaction may be changing it. */
  async find(sql: Pick<Sql, "get">, workspaceId: number, now: number): Promise<number> {
    return this.#known(workspaceId, now)?.micros ?? spentThisMonth(sql, workspaceId, now);
  }

  async findIn(tx: Tx, workspaceId: number, now: number): Promise<number> {
    const known = this.#known(workspaceId, now);
    if (known) return known.micros;
    const micros = await spentThisMonth(tx, workspaceId, now);
    this.#totals.set(workspaceId, { month: monthOf(now), micros });
    return micros;
  }

  add(tx: Tx, workspaceId: number, now: number, micros: number): void {
    // Whoever read a sum that includes this charge must read it again.
    tx.onRollback(() => this.#totals.delete(workspaceId));
    const known = this.#known(workspaceId, now);
    if (known) known.micros = cappedMicros(known.micros + micros);
    else this.#totals.delete(workspaceId);
  }

  #known(workspaceId: number, now: number): MonthTotal | undefined {
    const total = this.#totals.get(workspaceId);
    return total?.month === monthOf(now) ? total : undefined;
  }
}
