import type { Agents } from "../access/agents.ts";
import { type Caller, tokenIdOf } from "../access/caller.ts";
import { type Boundary, EVERYTHING, simplify } from "../access/memory-scope.ts";
import type { Tokens } from "../access/tokens.ts";

/** How much of its workspace a caller is told. */
export interface Rights {
  readonly scopes: readonly string[];
  /** The agent that it acts as. */
  readonly agent: { readonly id: number; readonly name: string } | null;
  /** How far it sees into the vault. */
  readonly boundary: Boundary;
  /** When all of that ends, in milliseconds since the Unix epoch; infinite where no end is known. */
  readonly until: number;
}

/**
 * What a caller has now, where what it came with is good `until` then; undefined where its token is no longer good. Who has no
 * token is the operator.
 */
export async function rightsOf(
  { tokens, agents }: { readonly tokens: Pick<Tokens, "callerOf">; readonly agents: Pick<Agents, "byId"> },
  caller: Caller,
  until: number,
): Promise<Rights | undefined> {
  const { workspaceId } = caller;
  const token = tokenIdOf(caller);
  const now = token === null ? caller : await tokens.callerOf(workspaceId, token);
  if (!now) return undefined;
  const { scopes, agent } = now;
  if (!agent) return { scopes, agent, boundary: EVERYTHING, until };
  const acting = await agents.byId(workspaceId, agent.id);
  return acting && { scopes, agent, boundary: simplify(acting.memoryScope), until };
}

/** Whether the same is told with either, however long. */
export function areSame(before: Rights, after: Rights): boolean {
  return JSON.stringify({ ...before, until: 0 }) === JSON.stringify({ ...after, until: 0 });
}
