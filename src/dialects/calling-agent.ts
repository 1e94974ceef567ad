import type { Agent, Agents } from "../access/agents.ts";
import { hasScope } from "../access/scopes.ts";
import { Problem } from "../base/errors.ts";
import type { Call } from "../gate/call.ts";
import { agentRemoved } from "../gate/direct/refusals.ts";

/** The header in which a client whose token has no agent names the agent to act as. */
export const AGENT_HEADER = "gatehouse-agent";
/** The headers that `callingAgent` reads, each with a description. */
export const AGENT_HEADERS = {
  [AGENT_HEADER]: "The agent that a token without one acts as. Also needs `tasks:write`.",
};

/**
 * The agent that a client's call is made as, or null if there is none.
 * @throws Problem 403 `agent_forbidden`, `scope_missing`, 404 `agent_not_found`
 */
export async function callingAgent(agents: Agents, call: Call, headers: Headers): Promise<Agent | null> {
  const { caller } = call;
  const named = headers.get(AGENT_HEADER);
  if (caller.agent) {
    if (named !== null && named !== caller.agent.name) {
      throw new Problem(
        "agent_forbidden",
        "The token acts as a different agent from the one that the header names.",
      );
    }
    const agent = await agents.byId(caller.workspaceId, caller.agent.id);
    if (!agent) throw agentRemoved();
    return agent;
  }
  if (named === null) return null;
  if (!hasScope(caller.scopes, "tasks:write")) {
    throw new Problem("scope_missing", "To name an agent, the token needs the scope tasks:write.");
  }
  call.about({ agent: named });
  return agents.get(caller.workspaceId, named);
}
