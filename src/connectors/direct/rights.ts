import type { Agent, Agents } from "../../access/agents.ts";
import type { Caller } from "../../access/caller.ts";
import type { Workspaces } from "../../access/workspaces.ts";
import { agentRemoved, refuseStopped } from "../../gate/direct/refusals.ts";
import { RightsChanged } from "../../gate/rights-changed.ts";
import type { Admit } from "../../ledger/ledger.ts";
import type { CatalogueTool } from "../catalogue.ts";
import { EVERY_TOOL, type ToolRegistry } from "../registry.ts";

export interface DirectRightsParts {
  readonly agents: Agents;
  readonly workspaces: Pick<Workspaces, "isStopped">;
  readonly registry: ToolRegistry;
}

/**
 * Checks a call again just before it is made.
 * @throws Problem if it has since been forbidden. @throws RightsChanged if all checks must be repeated
 */
export function requireAllowed(
  parts: DirectRightsParts,
  { workspaceId, scopes }: Caller,
  tool: CatalogueTool,
  agent: Agent | null,
): void {
  const { registry } = parts;
  refuseStopped(parts, workspaceId, agent);
  const now = registry.get(workspaceId, tool.name, { tools: agent?.tools ?? EVERY_TOOL, scopes });
  const isAsked = agent !== null && registry.needsApproval(workspaceId, tool.name, agent.approvals);
  if (isAsked || now !== tool) throw new RightsChanged();
}

/**
 * `requireAllowed` in the transaction of a call's intent. Reads the agent again only if any agent has changed.
 * @param made the call as checked; `seen` is the agents' revision before its agent was read
 */
export function admitAllowed(
  parts: DirectRightsParts,
  caller: Caller,
  made: { readonly tool: CatalogueTool; readonly agent: Agent | null; readonly seen: number | null },
): Admit {
  const { agents } = parts;
  const { tool, agent: before, seen } = made;
  return (tx) => {
    if (before === null || (seen !== null && seen === agents.revision.settled)) {
      requireAllowed(parts, caller, tool, before);
      return undefined;
    }
    return agents.byId(caller.workspaceId, before.id, tx).then((agent) => {
      if (!agent) throw agentRemoved();
      requireAllowed(parts, caller, tool, agent);
    });
  };
}
