import type { Agents } from "../../access/agents.ts";
import type { Caller } from "../../access/caller.ts";
import { timestamp } from "../../base/clock.ts";
import { Problem } from "../../base/errors.ts";
import { isAboutAgentSince } from "../../ledger/agent-identity.ts";
import { parsedEntry } from "../../ledger/reading/parsed-entry.ts";
import type { StoredEntry } from "../../ledger/reading/query.ts";

/**
 * Everything in the ledger that a token acting as an agent may see: the entries about its agent, but none about
 * earlier agents with the same name.
 */
export interface OwnEntries {
  readonly agent: string;
  /** When the agent was created. RFC 3339 UTC with milliseconds, inclusive. */
  readonly since: string;
}

/**
 * The entries that a caller is limited to; null if it may see the whole workspace's ledger.
 * @throws Problem 404 `agent_not_found`
 */
export async function ownEntries(
  agents: Pick<Agents, "byId">,
  { workspaceId, agent }: Pick<Caller, "workspaceId" | "agent">,
): Promise<OwnEntries | null> {
  if (!agent) return null;
  const acting = await agents.byId(workspaceId, agent.id);
  if (!acting) throw new Problem("agent_not_found", "The agent that this token acts as was removed.");
  return { agent: acting.name, since: timestamp(acting.createdAt) };
}

/** Whether a caller may see an entry. */
export function seesEntry(own: OwnEntries | null, { bytes }: Pick<StoredEntry, "bytes">): boolean {
  if (!own) return true;
  const entry = parsedEntry(bytes);
  return entry.agent === own.agent && isAboutAgentSince(entry, own.since);
}
