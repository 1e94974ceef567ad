import { timestamp } from "../base/clock.ts";
import type { Sql, Tx } from "../store/db.ts";

/** In the place of an agent's id: what was spent by nobody who acts as an agent. Agents' ids begin at 1. */
const NO_AGENT = 0;
const DAY_CHARACTERS = 10;
const MONTH_CHARACTERS = 7;

/** An agent's day after something was added to it. Micro-credits. */
export interface DaySpent {
  readonly spent: number;
  /** The agent's budget as this transaction sees it; null: it has none, is archived, or there is no agent. */
  readonly limit: number | null;
}

/** Adds what a call cost to the present day (UTC) of its agent, or of the workspace alone where `agentId` is null. */
export async function recordSpending(
  tx: Tx,
  workspaceId: number,
  agentId: number | null,
  now: number,
  micros: number,
): Promise<DaySpent> {
  const row = await tx.get<DaySpent>(
    `INSERT INTO spending (workspace_id, agent_id, day, credits) VALUES ($1, $2, $3, $4)
     ON CONFLICT (workspace_id, day, agent_id) DO UPDATE SET credits = spending.credits + excluded.credits
     RETURNING credits AS spent,
       (SELECT credits_per_day FROM agents WHERE agents.workspace_id = $1 AND agents.id = $2 AND archived_at IS NULL) AS "limit"`,
    [workspaceId, agentId ?? NO_AGENT, dayOf(now), micros],
  );
  if (!row) throw new Error("what was spent was not answered");
  return row;
}

/** Micro-credits that an agent has spent in the present day (UTC). */
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
  return row?.credits ?? 0;
}

/** Micro-credits that a workspace has spent in the present month (UTC). */
export async function spentThisMonth(
  sql: Pick<Sql, "get">,
  workspaceId: number,
  now: number,
): Promise<number> {
  const month = timestamp(now).slice(0, MONTH_CHARACTERS);
  const row = await sql.get<{ credits: number }>(
    "SELECT COALESCE(SUM(credits), 0) AS credits FROM spending WHERE workspace_id = $1 AND day >= $2 AND day < $3",
    [workspaceId, `${month}-00`, `${month}-99`],
  );
  return row?.credits ?? 0;
}

function dayOf(now: number): string {
  return timestamp(now).slice(0, DAY_CHARACTERS);
}
