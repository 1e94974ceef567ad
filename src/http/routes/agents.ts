import { Elysia } from "elysia";
import Type from "typebox";
import { isAgentName } from "../../access/agent-names.ts";
import type { Agent, AgentPage, Agents } from "../../access/agents.ts";
import type { Caller } from "../../access/caller.ts";
import type { Tokens } from "../../access/tokens.ts";
import type { Clock } from "../../base/clock.ts";
import { Problem } from "../../base/errors.ts";
import type { Budgets } from "../../gate/budget.ts";
import { applyStop } from "../../gate/record-stop.ts";
import { StoreUnavailable } from "../../store/db.ts";
import {
  AGENT_DEFAULTS,
  AgentChange,
  AgentCreate,
  agentFields,
  memoryScopePaths,
  viewAgent,
} from "../agent-body.ts";
import { agentChange, agentVersion } from "../agent-change.ts";
import { DEFAULT_LIMIT, decodeCursor, LIST_QUERY, pageOf } from "../answer/page.ts";
import { type EndpointContext, endpoint } from "../endpoint.ts";

export interface AgentRouteParts {
  readonly agents: Agents;
  readonly budgets: Pick<Budgets, "changed">;
  readonly tokens: Tokens;
  /** Ends an agent's queued tasks, running tasks and calls. */
  readonly endWork: (workspaceId: number, agent: Pick<Agent, "id">) => Promise<void>;
  /**
   * Resolves when the ends of all stopped work are recorded.
   * @throws StoreUnavailable if they cannot be
   */
  readonly endsWritten: (workspaceId: number, agent: Pick<Agent, "id">) => Promise<void>;
  readonly clock: Clock;
  /** The configured tiers, lowest first. */
  tierNumbers(): readonly number[];
}

export function agentRoutes(
  endpoints: EndpointContext,
  { agents, budgets, tokens, endWork, endsWritten, clock, tierNumbers }: AgentRouteParts,
) {
  const view = (agent: Agent) => viewAgent(agent, tierNumbers());
  const tag = "Agents";

  const list = endpoint(
    endpoints,
    {
      action: "agent.list",
      scope: "agents:read",
      summary: "List agents by name",
      tag,
      query: LIST_QUERY,
      status: 200,
    },
    async ({ call, query: { limit = DEFAULT_LIMIT, cursor } }) => {
      const after = decodeCursor(cursor, isAgentName);
      const found = await visibleAgents(call.caller, limit, after);
      return { status: 200, body: pageOf(found.agents, found.more, (agent) => agent.name, view) };
    },
  );

  /** The agents that a caller may see. A token acting as an agent sees only that agent. */
  async function visibleAgents(
    { workspaceId, agent: own }: Caller,
    limit: number,
    after: string | undefined,
  ): Promise<AgentPage> {
    if (!own) return agents.list(workspaceId, limit, after);
    const agent = await agents.byId(workspaceId, own.id);
    return { agents: agent && (after === undefined || agent.name > after) ? [agent] : [], more: false };
  }

  const create = endpoint(
    endpoints,
    {
      action: "agent.create",
      scope: "agents:write",
      summary: "Create an agent",
      tag,
      body: AgentCreate,
      status: 201,
    },
    async ({ call, body }) => {
      call.about({ agent: body.name });
      refuseAgentTokens(call.caller);
      const fields = {
        ...AGENT_DEFAULTS,
        ...agentFields(body),
        owner: body.owner,
        memoryScope: memoryScopePaths(body.memory_scope),
      };
      const { name, ...given } = body;
      const agent = await call.commit(async (tx, record) => {
        const made = await agents.create(tx, call.caller.workspaceId, name, fields);
        await record({ detail: agentChange(made, given) });
        return made;
      });
      return { status: 201, body: view(agent), headers: { Location: `/v1/agents/${agent.name}` } };
    },
  );

  const read = endpoint(
    endpoints,
    { action: "agent.read", scope: "agents:read", summary: "Read an agent", tag, status: 200 },
    async ({ call, params: { name = "" } }) => {
      call.about({ agent: name });
      const agent = await agents.get(call.caller.workspaceId, name);
      if (!sees(call.caller, agent)) throw noAgent(name);
      return { status: 200, body: view(agent) };
    },
  );

  const change = endpoint(
    endpoints,
    {
      action: "agent.update",
      scope: "agents:write",
      summary: "Change an agent",
      tag,
      body: AgentChange,
      status: 200,
    },
    async ({ call, params: { name = "" }, body }) => {
      call.about({ agent: name });
      refuseAgentTokens(call.caller);
      const { workspaceId } = call.caller;
      const agent = await call.commit(async (tx, record) => {
        let before: number | null = null;
        const changed = await agents.update(tx, workspaceId, name, (agent) => {
          before = agent.creditsPerDay;
          return agentFields(body, agent.tierPolicy);
        });
        await record({ detail: agentChange(changed, body) });
        const payer = { workspaceId, agent: changed };
        await budgets.changed(tx, payer, { before, after: changed.creditsPerDay });
        return changed;
      });
      return { status: 200, body: view(agent) };
    },
  );

  const archive = endpoint(
    endpoints,
    {
      action: "agent.archive",
      scope: "agents:write",
      summary: "Archive an agent: ends its tasks and keeps its history",
      tag,
      status: 204,
    },
    async ({ call, params: { name = "" } }) => {
      call.about({ agent: name });
      refuseAgentTokens(call.caller);
      const { workspaceId } = call.caller;
      const agent = await call.commit(async (tx, record) => {
        const archived = await agents.archive(tx, workspaceId, name);
        tokens.changeWith(tx, { agent: archived.id });
        await record({ detail: agentVersion(archived) });
        return archived;
      });
      await endWork(workspaceId, agent);
      return { status: 204 };
    },
  );

  const oversight = {
    scope: "approvals:write",
    tag,
    bodyOptional: true,
    body: Type.Object({}, { additionalProperties: false }),
    status: 200,
  } as const;

  /**
   * Takes effect immediately, even if the store cannot be written: work ends while the decision is being recorded.
   */
  const stop = endpoint(
    endpoints,
    {
      ...oversight,
      action: "oversight.stop",
      summary: "Stop an agent: cancels its tasks and refuses new ones",
      urgent: true,
    },
    async ({ call, params: { name = "" } }) => {
      call.about({ agent: name });
      refuseAgentTokens(call.caller);
      const { workspaceId } = call.caller;
      const agent = await toStop(workspaceId, name);
      const decision = await call.decide("stop", clock);
      let stopped: Agent | undefined;
      await applyStop(call, {
        decision,
        halt: agents.halt(workspaceId, agent.id),
        async write(tx) {
          stopped = await agents.stop(tx, workspaceId, agent.id);
          // The agent has since been archived. If the decision is recorded later, it is still evidence.
          if (!stopped && !call.isDeferred) throw noAgent(name);
        },
        endWork: () => endWork(workspaceId, agent),
      });
      return { status: 200, body: view({ ...(stopped ?? agent), status: "stopped" }) };
    },
  );

  /** The stored agent; if the store cannot be read, the agent as last read. */
  async function toStop(workspaceId: number, name: string): Promise<Agent> {
    try {
      return await agents.get(workspaceId, name);
    } catch (error) {
      const known = error instanceof StoreUnavailable ? agents.lastKnown(workspaceId, name) : undefined;
      if (!known) throw error;
      return known;
    }
  }

  const resume = endpoint(
    endpoints,
    { ...oversight, action: "oversight.resume", summary: "Resume a stopped agent" },
    async ({ call, params: { name = "" } }) => {
      call.about({ agent: name });
      refuseAgentTokens(call.caller);
      const { workspaceId } = call.caller;
      await call.decide("resume", clock);
      await call.commitEarlierDecisions();
      const { id } = await agents.get(workspaceId, name);
      // Otherwise a crash could leave tasks behind that nothing keeps from running.
      await endsWritten(workspaceId, { id });
      // A stop that arrives while this is written is newer and must stay in effect.
      const halt = agents.haltOf(workspaceId, id);
      const agent = await call.commit(async (tx, record) => {
        const resumed = await agents.resume(tx, workspaceId, name);
        tx.onCommit(() => halt?.lift());
        await record();
        return resumed;
      });
      return { status: 200, body: view(agent) };
    },
  );

  return new Elysia({ prefix: "/v1/agents" })
    .get("", list.handle, list.hook)
    .post("", create.handle, create.hook)
    .get("/:name", read.handle, read.hook)
    .patch("/:name", change.handle, change.hook)
    .delete("/:name", archive.handle, archive.hook)
    .post("/:name/stop", stop.handle, stop.hook)
    .post("/:name/resume", resume.handle, resume.hook);
}

function sees({ agent: own }: Caller, { id }: Agent): boolean {
  return own === null || own.id === id;
}

function noAgent(name: string): Problem {
  return new Problem("agent_not_found", `There is no agent named ${JSON.stringify(name)}.`);
}

/** An agent's token can only narrow what the agent may do, so it cannot change any agent, including its own. */
function refuseAgentTokens(caller: Caller): void {
  if (caller.agent) {
    throw new Problem("agent_forbidden", `This token acts as ${caller.agent.name} and cannot change agents.`);
  }
}
