import type { Agents } from "../access/agents.ts";
import type { Caller } from "../access/caller.ts";
import { type Boundary, EVERYTHING, narrow, simplify } from "../access/memory-scope.ts";
import { Problem } from "../base/errors.ts";
import type { Sql } from "../store/db.ts";

/** The part of a request that concerns its boundary. */
export interface BoundaryRequest {
  /** Name of the agent to search as. */
  readonly agent?: string | undefined;
  /** Paths to narrow the boundary to. */
  readonly scopes?: readonly string[] | undefined;
}

/**
 * The boundary of a call: that of the agent the token acts as; otherwise that of the agent named in the call, or
 * everything. `scopes` can only narrow it, and paths outside it have no effect. `sql`: read within a transaction.
 * @throws Problem 403 `agent_forbidden`, 404 `agent_not_found`
 */
export async function boundaryOf(
  agents: Agents,
  caller: Caller,
  wish: BoundaryRequest,
  sql?: Sql,
): Promise<Boundary> {
  const held = await memoryOf(agents, caller, wish.agent, sql);
  return wish.scopes === undefined ? simplify(held) : narrow(held, wish.scopes);
}

async function memoryOf(
  agents: Agents,
  { workspaceId, agent }: Caller,
  wished: string | undefined,
  sql: Sql | undefined,
): Promise<Boundary> {
  if (!agent)
    return wished === undefined ? EVERYTHING : (await agents.get(workspaceId, wished, sql)).memoryScope;
  if (wished !== undefined && wished !== agent.name) {
    throw new Problem(
      "agent_forbidden",
      `This token acts as ${agent.name} and sees only what that agent sees.`,
    );
  }
  // By id, because another agent may have taken the name since.
  const acting = await agents.byId(workspaceId, agent.id, sql);
  if (!acting) throw new Problem("agent_not_found", "The agent that this token acts as was removed.");
  return acting.memoryScope;
}
