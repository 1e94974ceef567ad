import type { Agent } from "../access/agents.ts";
import type { Workspace } from "../access/workspaces.ts";
import { timestamp } from "../base/clock.ts";
import { MICROS_PER_CREDIT } from "../base/credits.ts";
import { Problem } from "../base/errors.ts";
import type { Sql, Tx } from "../store/db.ts";

const DAY_CHARACTERS = 10;
const MONTH_CHARACTERS = 7;

/** Adds what a model call cost to its agent's day (UTC). */
export async function recordSpending(
  tx: Tx,
  workspaceId: number,
  agentId: number,
  now: number,
  micros: number,
): Promise<void> {
  if (micros === 0) return;
  await tx.run(
    `INSERT INTO spending (workspace_id, agent_id, day, credits) VALUES ($1, $2, $3, $4)
     ON CONFLICT (workspace_id, day, agent_id) DO UPDATE SET credits = spending.credits + excluded.credits`,
    [workspaceId, agentId, timestamp(now).slice(0, DAY_CHARACTERS), micros],
  );
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

/** @throws Problem 402 `credits_exhausted` when the agent's day or the workspace's month is spent. */
export async function checkBudget(
  sql: Pick<Sql, "get">,
  workspace: Workspace,
  agent: Pick<Agent, "id" | "name" | "creditsPerDay">,
  now: number,
): Promise<void> {
  if (agent.creditsPerDay !== null) {
    const row = await sql.get<{ credits: number }>(
      "SELECT credits FROM spending WHERE workspace_id = $1 AND agent_id = $2 AND day = $3",
      [workspace.id, agent.id, timestamp(now).slice(0, DAY_CHARACTERS)],
    );
    if ((row?.credits ?? 0) >= agent.creditsPerDay) {
      throw new Problem(
        "credits_exhausted",
        `The agent ${agent.name} has spent its ${agent.creditsPerDay / MICROS_PER_CREDIT} credits of today (UTC).`,
      );
    }
  }
  if (workspace.creditsPerMonth !== null) {
    if ((await spentThisMonth(sql, workspace.id, now)) >= workspace.creditsPerMonth) {
      throw new Problem(
        "credits_exhausted",
        `The workspace has spent its ${workspace.creditsPerMonth / MICROS_PER_CREDIT} credits of this month (UTC).`,
      );
    }
  }
}
