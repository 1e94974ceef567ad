import type { Agent } from "../../access/agents.ts";
import { tokenIdOf } from "../../access/caller.ts";
import type { Grant } from "../../access/grant.ts";
import { allowsModel, allowsTier } from "../../access/tier-policy.ts";
import { AgentDenied } from "../../agents/index.ts";
import type { Tx } from "../../store/db.ts";
import { AGENT_STOPPED, TOKEN_ENDED, TOKEN_ENDED_WORDS, WORKSPACE_STOPPED } from "../ending/interruption.ts";
import type { TaskParts } from "../parts.ts";
import type { Task } from "../task.ts";

export type RunRightsParts = Pick<TaskParts, "agents" | "tokens" | "tools" | "workspaces">;

/**
 * The rights of a run, according to its agent as last read, the current connectors and the token that dispatched the
 * task. All of them may change while the task runs. A change takes effect with the next call.
 */
export class RunRights {
  /**
   * The tools that the task lists, as token scopes. The token's own scopes permitted them when the task was accepted.
   */
  readonly scopes: readonly string[];
  readonly #parts: RunRightsParts;
  readonly #task: Task;
  /** The grant of the token that dispatched the task; null if the operator did. */
  readonly #grant: Grant | null;
  /** Definitions of the tools offered to the model, by name. */
  readonly #offered = new Map<string, string | undefined>();
  #agent: Agent | null = null;

  constructor(parts: RunRightsParts, task: Task) {
    this.#parts = parts;
    this.#task = task;
    this.scopes = task.tools.map((tool) => `tools:${tool}`);
    const token = tokenIdOf({ actor: task.createdBy });
    this.#grant = token === null ? null : parts.tokens.grantOf(task.workspaceId, token);
  }

  /**
   * The agent as last read.
   * @throws Error if it has not been read yet
   */
  get agent(): Agent {
    if (!this.#agent) throw new Error("the run has not read its agent");
    return this.#agent;
  }

  /**
   * Reads the agent again. If it has been removed, the previous one is kept and the next call is refused.
   * @returns the agent, if it exists
   */
  async refresh(): Promise<Agent | undefined> {
    const agent = await this.#parts.agents.byId(this.#task.workspaceId, this.#task.agentId);
    if (agent) this.#agent = agent;
    return agent;
  }

  /**
   * Reads the agent and the token in the transaction of a call's intent. A change to them is either committed before
   * the intent, and then takes effect, or comes after it.
   * @throws AgentDenied `agent_stopped`, `invalid_token`
   */
  async require(tx: Tx): Promise<Agent> {
    const agent = await this.#parts.agents.byId(this.#task.workspaceId, this.#task.agentId, tx);
    if (!agent) throw new AgentDenied("agent_stopped", "The agent was removed.");
    if (agent.status === "stopped") throw new AgentDenied("agent_stopped", this.whyStopped());
    const isValid = this.#grant?.isValid(tx) ?? true;
    // Nothing is sent for a token that has ended, however long ago it dispatched the task.
    if (!(typeof isValid === "boolean" ? isValid : await isValid)) {
      throw new AgentDenied(TOKEN_ENDED, TOKEN_ENDED_WORDS);
    }
    this.#agent = agent;
    return agent;
  }

  whyStopped(): string {
    return this.#parts.workspaces.isStopped(this.#task.workspaceId) ? WORKSPACE_STOPPED : AGENT_STOPPED;
  }

  /** Whether the policy allows this model in the task's tier. */
  allowsModel(model: string): boolean {
    const { tierPolicy } = this.agent;
    return allowsTier(tierPolicy, this.#task.tier) && allowsModel(tierPolicy, model);
  }

  /** Whether the agent, the task and the connector allow this tool. */
  allowsTool(tool: string): boolean {
    const { tools } = this.agent;
    return this.#parts.tools.allows(this.#task.workspaceId, tool, { tools, scopes: this.scopes });
  }

  /** Whether a person has to approve calls to this tool. */
  needsApproval(tool: string): boolean {
    return this.#parts.tools.needsApproval(this.#task.workspaceId, tool, this.agent.approvals);
  }

  /** Remembers the current definitions of these tools. An approval counts only for what the model was offered. */
  offer(tools: readonly string[]): void {
    for (const tool of tools) this.#offered.set(tool, this.#currentDefinition(tool));
  }

  /**
   * The hash of the connector and tool that a call would reach (`definitionHash`); undefined if the tool is gone or
   * has changed since it was offered.
   */
  definitionOf(tool: string): string | undefined {
    const current = this.#currentDefinition(tool);
    const offered = this.#offered.get(tool);
    return offered === undefined || offered === current ? current : undefined;
  }

  #currentDefinition(tool: string): string | undefined {
    return this.#parts.tools.definitionOf(this.#task.workspaceId, tool);
  }
}
