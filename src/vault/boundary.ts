import type { Agents } from "../access/agents.ts";
import type { Caller } from "../access/caller.ts";
import { type Boundary, EVERYTHING, narrow, simplify } from "../access/memory-scope.ts";
import { Problem } from "../base/errors.ts";

/** What a call asks of its boundary. */
export interface BoundaryWish {
  /** Name of the agent whose memory is meant. */
  readonly agent?: string | undefined;
  /** Paths to narrow it to. */
  readonly scopes?: readonly string[] | undefined;
}

/**
 * How far a call sees: as far as the agent that the token acts as; without one, as far as the agent that the call names, or
 * everything. `scopes` can only narrow that, and outside of it they are nothing.
 * @throws Problem 403 `agent_forbidden`, 404 `agent_not_found`
 */
export async function boundaryOf(agents: Agents, caller: Caller, wish: BoundaryWish): Promise<Boundary> {
  if (caller.agent && wish.agent !== undefined && wish.agent !== caller.agent.name) {
    throw new Problem("agent_forbidden", `This token acts as ${caller.agent.name} and sees as it alone.`);
  }
  const name = caller.agent?.name ?? wish.agent;
  const held = name === undefined ? EVERYTHING : (await agents.get(caller.workspaceId, name)).memoryScope;
  return wish.scopes === undefined ? simplify(held) : narrow(held, wish.scopes);
}
