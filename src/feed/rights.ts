import type { Agents } from "../access/agents.ts";
import { type Caller, tokenIdOf } from "../access/caller.ts";
import { type Boundary, EVERYTHING, simplify } from "../access/memory-scope.ts";
import type { Tokens } from "../access/tokens.ts";

/** The parts of its workspace that a caller may see. */
export interface FeedRights {
  readonly scopes: readonly string[];
  /** The agent that it acts as. */
  readonly agent: { readonly id: number; readonly name: string } | null;
  /** The vault scopes that it can see. */
  readonly boundary: Boundary;
  /** When these rights end, in milliseconds since the Unix epoch; infinite if unknown. */
  readonly until: number;
}

/**
 * A caller's current rights, valid `until` the end of its credential; undefined if its token is no longer valid. A
 * caller without a token is the operator.
 */
export async function rightsOf(
  { tokens, agents }: { readonly tokens: Pick<Tokens, "callerOf">; readonly agents: Pick<Agents, "byId"> },
  caller: Caller,
  until: number,
): Promise<FeedRights | undefined> {
  const { workspaceId } = caller;
  const token = tokenIdOf(caller);
  const now = token === null ? caller : await tokens.callerOf(workspaceId, token);
  if (!now) return undefined;
  const { scopes, agent } = now;
  if (!agent) return { scopes, agent, boundary: EVERYTHING, until };
  const acting = await agents.byId(workspaceId, agent.id);
  return acting && { scopes, agent, boundary: simplify(acting.memoryScope), until };
}

/** Whether two rights permit the same, regardless of when they end. */
export function areSame(before: FeedRights, after: FeedRights): boolean {
  return JSON.stringify({ ...before, until: 0 }) === JSON.stringify({ ...after, until: 0 });
}
