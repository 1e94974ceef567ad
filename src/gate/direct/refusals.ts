import type { Agent, Agents } from "../../access/agents.ts";
import type { Workspaces } from "../../access/workspaces.ts";
import { Problem } from "../../base/errors.ts";
import { CallInterruption } from "./running-calls.ts";

function agentStopped(agent: string): Problem {
  return new Problem("agent_stopped", `The agent ${agent} is stopped.`);
}

function workspaceStopped(): Problem {
  return new Problem("agent_stopped", "The workspace is stopped: no tools or models are called.");
}

export function agentRemoved(): Problem {
  return new Problem("agent_not_found", "The agent that this token acts as was removed.");
}

export function draining(): Problem {
  return new Problem("draining", "The server is shutting down and accepts no new calls.", {
    headers: { "Retry-After": "5" },
  });
}

/** The answer to a call that Gatehouse has ended. @param reason the reason of the call's signal */
export function interrupted(reason: unknown, agent: Pick<Agent, "name"> | null): Problem {
  if (!(reason instanceof CallInterruption) || reason.reason === "workspace_stopped")
    return workspaceStopped();
  if (reason.reason === "shutdown") return draining();
  return agent ? agentStopped(agent.name) : workspaceStopped();
}

/** @throws Problem 409 `agent_stopped` if the agent or its workspace is stopped */
export function refuseStopped(
  { agents, workspaces }: { readonly agents: Agents; readonly workspaces: Pick<Workspaces, "isStopped"> },
  workspaceId: number,
  agent: Agent | null,
): void {
  if (agent) {
    if (agent.status === "stopped" || agents.haltOf(workspaceId, agent.id)) throw agentStopped(agent.name);
  }
  if (workspaces.isStopped(workspaceId)) throw workspaceStopped();
}
