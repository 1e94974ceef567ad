import { timestamp } from "../base/clock.ts";
import { cappedMicros, cappedSum } from "../base/credits.ts";
import type { Sql, Tx } from "../store/db.ts";

/** Replaces an agent's id for callers that do not act as an agent. Agents' ids begin at 1. */
const NO_AGENT = 0;
const DAY_CHARACTERS = 10;
const MONTH_CHARACTERS = 7;

/** An agent's spending today, after a charge. Micro-credits. */
export interface DaySpent {
  readonly spent: number;
  /**
   * The agent's budget as this transaction sees it. Null if there is no budget or no agent, or the agent is archived.
   */
  readonly limit: number | null;
}

/** Adds a call's cost to today's spending (UTC) of its agent, or only of the workspace if `agentId` is null. */
export async function recordSpending(
  tx: Tx,
  workspaceId: number,
  agentId: number | null,
  now: number,
  micros: number,
): Promise<DaySpent> {
  const row = await tx.get<DaySpent>(
    `INSERT INTO spending (workspace_id, agent_id, day, credits) VALUES ($1, $2, $3, $4)
     ON CONFLICT (workspace_id, day, agent_id) DO UPDATE SET credits = ${cappedSum("spending.credits", "excluded.credits")}
     RETURNING credits AS spent,
       (SELECT credits_per_day FROM agents WHERE agents.workspace_id = $1 AND agents.id = $2 AND archived_at IS NULL) AS "limit"`,
    [workspaceId, agentId ?? NO_AGENT, dayOf(now), micros],
  );
  if (!row) throw new Error("recording a charge returned no row");
  return row;
}

/** Micro-credits that an agent has spent today (UTC). */
export async function spentToday(
  sql: Pick<Sql, "get">,
  workspaceId: number,
  agentId: number,
  now: number,
): Promise<number> {
  const row = await sql.get<{ credits: number }>(
    "SELECT credits FROM spending WHERE workspace_id = $1 AND agent_id = $2 AND day = $3",
    [workspaceId, agentId, dayOf(now)],
  );
  return cappedMicros(row?.credits ?? 0);
}

/** Micro-credits that a workspace has spent this month (UTC). Reads a row for each agent and day: see `MonthTotals`. */
export async function spentThisMonth(
  sql: Pick<Sql, "get">,
  workspaceId: number,
  now: number,
): Promise<number> {
  const month = monthOf(now);
  const row = await sql.get<{ credits: number }>(
    // As floating-point numbers, which are exact up to the greatest amount: a sum of integers fails if it is too large.
    "SELECT COALESCE(SUM(CAST(credits AS DOUBLE PRECISION)), 0) AS credits FROM spending WHERE workspace_id = $1 AND day >= $2 AND day < $3",
    [workspaceId, `${month}-00`, `${month}-99`],
  );
  return cappedMicros(row?.credits ?? 0);
}

/** The month (UTC) of a time, such as `2026-01`. */
export function monthOf(now: number): string {
  return timestamp(now).slice(0, MONTH_CHARACTERS);
}

function dayOf(now: number): string {
  return timestamp(now).slice(0, DAY_CHARACTERS);
}
