import type { Agent, Agents } from "../access/agents.ts";
import { OPEN_POLICY, type TierPolicy } from "../access/tier-policy.ts";
import type { Workspaces } from "../access/workspaces.ts";
import type { DirectCallRecords } from "../gate/direct/open.ts";
import { agentRemoved, draining, refuseStopped } from "../gate/direct/refusals.ts";
import type { Tx } from "../store/db.ts";

export interface CallPolicyParts {
  readonly agents: Agents;
  readonly workspaces: Pick<Workspaces, "isStopped">;
  readonly direct: Pick<DirectCallRecords, "running">;
}

/** The tier policy of a call's agent, as last read. Without an agent, every model is allowed. */
export class CallPolicy {
  current: TierPolicy;
  /** Returns `current` as a function, for code that reads it later. */
  readonly read = (): TierPolicy => this.current;
  readonly #parts: CallPolicyParts;
  readonly #workspaceId: number;
  readonly #agent: Agent | null;

  constructor(parts: CallPolicyParts, workspaceId: number, agent: Agent | null) {
    this.#parts = parts;
    this.#workspaceId = workspaceId;
    this.#agent = agent;
    this.current = policyOf(agent);
  }

  /** @throws Problem 409 `agent_stopped`, 503 `draining` */
  refuseEnded(agent: Agent | null = this.#agent): void {
    if (this.#parts.direct.running.isDraining) throw draining();
    refuseStopped(this.#parts, this.#workspaceId, agent);
  }

  /**
   * Checks that the call may still be made, with the agent's current settings: in the transaction of an intent, and
   * between requests if a call makes several.
   * @throws Problem 404 `agent_not_found`, 409 `agent_stopped`, 503 `draining`
   */
  async admit(tx?: Tx): Promise<Agent | null> {
    const before = this.#agent;
    const agent = before && ((await this.#parts.agents.byId(this.#workspaceId, before.id, tx)) ?? null);
    if (before && !agent) throw agentRemoved();
    this.refuseEnded(agent);
    this.current = policyOf(agent);
    return agent;
  }
}

function policyOf(agent: Agent | null): TierPolicy {
  return agent?.tierPolicy ?? OPEN_POLICY;
}
