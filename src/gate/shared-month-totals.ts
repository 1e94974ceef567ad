import { cappedMicros, cappedSum } from "../base/credits.ts";
import type { Sql, Tx } from "../store/db.ts";
import type { MonthTotals } from "./month-totals.ts";
import { monthOf, spentThisMonth } from "./spending.ts";

/**
 * Adds to the row of this month. The first charge of a month, or of a store whose spending was copied, begins the row with
 * the sum of the spending. A charge of an earlier month changes nothing.
 */
const ADD = `WITH added AS (
    UPDATE spending_months SET credits = ${cappedSum("spending_months.credits", "$3::bigint")}
    WHERE workspace_id = $1 AND month = $2 RETURNING 1
  )
  INSERT INTO spending_months (workspace_id, month, credits)
  SELECT $1, $2, LEAST(SUM(credits), ${Number.MAX_SAFE_INTEGER}) FROM spending
  WHERE workspace_id = $1 AND day >= $4 AND day < $5
  HAVING NOT EXISTS (SELECT 1 FROM added) AND COUNT(*) > 0
  ON CONFLICT (workspace_id) DO UPDATE SET month = excluded.month, credits = excluded.credits
    WHERE spending_months.month < excluded.month`;

/** One row for each workspace, of the newest month in which it has spent something, so any node may charge calls. */
export class SharedMonthTotals implements MonthTotals {
  async find(sql: Pick<Sql, "get">, workspaceId: number, now: number): Promise<number> {
    const row = await sql.get<{ credits: number }>(
      "SELECT credits FROM spending_months WHERE workspace_id = $1 AND month = $2",
      [workspaceId, monthOf(now)],
    );
    return row ? cappedMicros(row.credits) : spentThisMonth(sql, workspaceId, now);
  }

  findIn(tx: Tx, workspaceId: number, now: number): Promise<number> {
    return this.find(tx, workspaceId, now);
  }

  add(tx: Tx, workspaceId: number, now: number, micros: number): void {
    const month = monthOf(now);
    tx.write(ADD, [workspaceId, month, micros, `${month}-00`, `${month}-99`]);
  }
}
