import type { Sql } from "../store/db.ts";
import { type StoredRow, sealedColumns } from "../store/seals/seals.ts";
import type { Agent } from "./agents.ts";

type AgentAtRow = StoredRow<"agents"> & Pick<Agent, "id" | "name"> & { readonly created_at: number };

/**
 * The agent that had a name at a given time, for charging a call that a signed entry names. Names are reused only
 * after an agent was archived, so an agent that is older than the entry is the one that it names.
 *
 * @param at milliseconds since the Unix epoch
 * @returns null if the agent is archived, or if its row is missing or was not written by this server: nobody else is
 *   charged because a row says so
 */
export async function agentAt(
  sql: Sql,
  workspaceId: number,
  name: string | undefined,
  at: number,
): Promise<Pick<Agent, "id" | "name"> | null> {
  if (name === undefined) return null;
  const rows = await sql.all<AgentAtRow>(
    `SELECT ${sealedColumns("agents")} FROM agents WHERE workspace_id = $1 AND name = $2 AND archived_at IS NULL`,
    [workspaceId, name],
  );
  const [agent, ...others] = rows.filter((row) => sql.seals.fits("agents", row) && row.created_at <= at);
  return agent && others.length === 0 ? { id: agent.id, name: agent.name } : null;
}
