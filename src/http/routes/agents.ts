import { Elysia } from "elysia";
import Type, { type Static } from "typebox";
import { AGENT_NAME, type Agent, type AgentFields, type Agents, isAgentName } from "../../access/agents.ts";
import type { Caller } from "../../access/caller.ts";
import { MEMORY_SCOPE, MEMORY_SCOPE_LENGTH } from "../../access/memory-scope.ts";
import { OPEN_POLICY, type TierPolicy } from "../../access/policy.ts";
import type { Tokens } from "../../access/tokens.ts";
import { type Clock, timestamp } from "../../base/clock.ts";
import { MICROS_PER_CREDIT, toMicros } from "../../base/credits.ts";
import { invalidField, Problem } from "../../base/errors.ts";
import { GLOB_HINT, isGlob } from "../../base/glob.ts";
import type { Budgets } from "../../gate/budget.ts";
import { holdAtOnce } from "../../gate/hold-at-once.ts";
import { StoreUnavailable } from "../../store/db.ts";
import { agentChange, agentVersion } from "../agent-change.ts";
import { refuseTwice } from "../body.ts";
import { type Door, endpoint } from "../endpoint.ts";
import { DEFAULT_LIMIT, decodeCursor, PAGE, page } from "../page.ts";

const MAX_STEPS = 20;

const MemoryScope = Type.String({
  pattern: MEMORY_SCOPE,
  maxLength: MEMORY_SCOPE_LENGTH,
  description: "A slash path of up to 16 segments, or `/` for the whole workspace.",
});
const Globs = Type.Array(
  Type.String({ minLength: 1, maxLength: 200, description: "`*`: any characters; `?`: exactly one." }),
  { maxItems: 200 },
);
const Fields = {
  owner: Type.String({ minLength: 1, maxLength: 200, description: "Who answers for this agent." }),
  memory_scope: Type.Union([MemoryScope, Type.Array(MemoryScope, { minItems: 1, maxItems: 32 })], {
    description: "Which documents it may search: these paths and what is below them.",
  }),
  description: Type.Union([Type.String({ maxLength: 2_000 }), Type.Null()]),
  instructions: Type.Union([Type.String({ maxLength: 100_000 }), Type.Null()], {
    description: "The system prompt.",
  }),
  tier_policy: Type.Object(
    {
      tiers: Type.Optional(Type.Array(Type.Integer({ minimum: 1 }), { maxItems: 100 })),
      models: Type.Optional(
        Type.Object(
          { allow: Type.Optional(Globs), deny: Type.Optional(Globs) },
          { additionalProperties: false },
        ),
      ),
    },
    { additionalProperties: false, description: "Default: every configured tier, every model." },
  ),
  tools: Type.Array(Type.String({ minLength: 1, maxLength: 200 }), {
    maxItems: 200,
    description: 'Globs of the tools it may use. Default `["*"]`.',
  }),
  approvals: Type.Union([Globs, Type.Null()], {
    description: "Globs of tools that need a person's approval. Null: every tool marked destructive.",
  }),
  approvals_required: Type.Integer({
    minimum: 1,
    maximum: 2,
    description: "How many different people have to approve such a call. Default 1.",
  }),
  max_steps: Type.Integer({ minimum: 1, maximum: 1_000, description: `Default ${MAX_STEPS}.` }),
  budget: Type.Object(
    { credits_per_day: Type.Union([Type.Number({ minimum: 0 }), Type.Null()]) },
    { additionalProperties: false },
  ),
};
const { owner, memory_scope, ...rest } = Fields;
const optional = {
  description: Type.Optional(rest.description),
  instructions: Type.Optional(rest.instructions),
  tier_policy: Type.Optional(rest.tier_policy),
  tools: Type.Optional(rest.tools),
  approvals: Type.Optional(rest.approvals),
  approvals_required: Type.Optional(rest.approvals_required),
  max_steps: Type.Optional(rest.max_steps),
  budget: Type.Optional(rest.budget),
};
export const AgentCreate = Type.Object(
  { name: Type.String({ pattern: AGENT_NAME }), owner, memory_scope, ...optional },
  { additionalProperties: false },
);
export const AgentChange = Type.Object(
  { owner: Type.Optional(owner), memory_scope: Type.Optional(memory_scope), ...optional },
  { additionalProperties: false },
);

export interface AgentRouteParts {
  readonly agents: Agents;
  readonly budgets: Pick<Budgets, "changed">;
  readonly tokens: Tokens;
  /** Ends what an agent has queued, running and called. */
  readonly endWork: (workspaceId: number, agent: Pick<Agent, "id">) => Promise<void>;
  /** Resolves when the ends of what a stop has ended are written. @throws StoreUnavailable where they cannot be */
  readonly endsWritten: (workspaceId: number, agent: Pick<Agent, "id">) => Promise<void>;
  readonly clock: Clock;
  /** The configured tiers, lowest first. */
  tierNumbers(): readonly number[];
}

export function agentRoutes(
  door: Door,
  { agents, budgets, tokens, endWork, endsWritten, clock, tierNumbers }: AgentRouteParts,
) {
  const view = (agent: Agent) => viewAgent(agent, tierNumbers());
  const tag = "Agents";

  const list = endpoint(
    door,
    {
      action: "agent.list",
      scope: "agents:read",
      summary: "List agents by name",
      tag,
      query: Type.Object(PAGE, { additionalProperties: false }),
      status: 200,
    },
    async ({ call, query: { limit = DEFAULT_LIMIT, cursor } }) => {
      const after = decodeCursor(cursor, isAgentName);
      const found = await visibleAgents(call.caller, limit, after);
      return { status: 200, body: page(found, limit, (agent) => agent.name, view) };
    },
  );

  /** Those that a caller sees, as `agents.list` answers them: a token that acts as an agent sees its own. */
  async function visibleAgents(
    { workspaceId, agent: own }: Caller,
    limit: number,
    after: string | undefined,
  ): Promise<readonly Agent[]> {
    if (!own) return agents.list(workspaceId, limit, after);
    const agent = await agents.byId(workspaceId, own.id);
    return agent && (after === undefined || agent.name > after) ? [agent] : [];
  }

  const create = endpoint(
    door,
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
        ...DEFAULTS,
        ...fieldsOf(body),
        owner: body.owner,
        memoryScope: paths(body.memory_scope),
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
    door,
    { action: "agent.read", scope: "agents:read", summary: "Read an agent", tag, status: 200 },
    async ({ call, params: { name = "" } }) => {
      call.about({ agent: name });
      const agent = await agents.get(call.caller.workspaceId, name);
      if (!sees(call.caller, agent)) throw noAgent(name);
      return { status: 200, body: view(agent) };
    },
  );

  const change = endpoint(
    door,
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
          return fieldsOf(body, agent.tierPolicy);
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
    door,
    {
      action: "agent.archive",
      scope: "agents:write",
      summary: "Archive an agent: its tasks end, its history stays",
      tag,
      status: 204,
    },
    async ({ call, params: { name = "" } }) => {
      call.about({ agent: name });
      refuseAgentTokens(call.caller);
      const { workspaceId } = call.caller;
      const agent = await call.commit(async (tx, record) => {
        tokens.changeWith(tx);
        const archived = await agents.archive(tx, workspaceId, name);
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

  /** It holds at once, and where the store cannot be written: the agent's work ends while the decision is being recorded. */
  const stop = endpoint(
    door,
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
      await holdAtOnce(call, {
        decision,
        halt: agents.halt(workspaceId, agent.id),
        async write(tx) {
          stopped = await agents.stop(tx, workspaceId, agent.id);
          // It was archived meanwhile. Where that was long ago, the decision is evidence all the same.
          if (!stopped && !call.isPutOff) throw noAgent(name);
        },
        endWork: () => endWork(workspaceId, agent),
      });
      return { status: 200, body: view({ ...(stopped ?? agent), status: "stopped" }) };
    },
  );

  /** As the store has it; where it cannot be read, as it was when it was read last. */
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
    door,
    { ...oversight, action: "oversight.resume", summary: "Let a stopped agent work again" },
    async ({ call, params: { name = "" } }) => {
      call.about({ agent: name });
      refuseAgentTokens(call.caller);
      const { workspaceId } = call.caller;
      await call.decide("resume", clock);
      await call.commitEarlierDecisions();
      const { id } = await agents.get(workspaceId, name);
      // Else a crash would leave tasks behind that nothing keeps from running any more.
      await endsWritten(workspaceId, { id });
      // A stop that comes while this is being written came last, and holds.
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

/** An agent's token can only narrow what the agent may do: it changes no agent, itself least of all. */
function refuseAgentTokens(caller: Caller): void {
  if (caller.agent) {
    throw new Problem("agent_forbidden", `This token acts as ${caller.agent.name} and may change no agent.`);
  }
}

const DEFAULTS = {
  description: null,
  instructions: null,
  tierPolicy: OPEN_POLICY,
  tools: ["*"],
  approvals: null,
  approvalsRequired: 1,
  maxSteps: MAX_STEPS,
  creditsPerDay: null,
};

/** What a body names, as fields. `before`: the policy of which the body names parts. */
function fieldsOf(body: Static<typeof AgentChange>, before = OPEN_POLICY): Partial<AgentFields> {
  return {
    ...(body.owner === undefined ? {} : { owner: body.owner }),
    ...(body.memory_scope === undefined ? {} : { memoryScope: paths(body.memory_scope) }),
    ...(body.description === undefined ? {} : { description: body.description }),
    ...(body.instructions === undefined ? {} : { instructions: body.instructions }),
    ...(body.tier_policy === undefined ? {} : { tierPolicy: policyOf(body.tier_policy, before) }),
    ...(body.tools === undefined ? {} : { tools: globs("/tools", body.tools) }),
    ...(body.approvals === undefined
      ? {}
      : { approvals: body.approvals && globs("/approvals", body.approvals) }),
    ...(body.approvals_required === undefined ? {} : { approvalsRequired: body.approvals_required }),
    ...(body.max_steps === undefined ? {} : { maxSteps: body.max_steps }),
    ...(body.budget === undefined ? {} : { creditsPerDay: budgetOf(body.budget.credits_per_day) }),
  };
}

function paths(scope: string | string[]): string[] {
  return typeof scope === "string" ? [scope] : [...new Set(scope)];
}

/** Only what is named changes: a policy given new tiers keeps the models that it denies. */
function policyOf(given: Static<typeof Fields.tier_policy>, before: TierPolicy): TierPolicy {
  refuseTwice("/tier_policy/tiers", given.tiers);
  const { allow, deny } = given.models ?? {};
  return {
    tiers: given.tiers ?? before.tiers,
    models: {
      allow: allow ? globs("/tier_policy/models/allow", allow) : before.models.allow,
      deny: deny ? globs("/tier_policy/models/deny", deny) : before.models.deny,
    },
  };
}

/** @throws Problem 422 for a pattern that would be taken for something else than its author means */
function globs(path: string, patterns: string[]): string[] {
  const place = patterns.findIndex((pattern) => !isGlob(pattern));
  if (place !== -1) throw invalidField(`${path}/${place}`, GLOB_HINT);
  return patterns;
}

function budgetOf(credits: number | null): number | null {
  if (credits === null) return null;
  const micros = toMicros(credits);
  if (micros === undefined)
    throw invalidField("/budget/credits_per_day", "must be a number of credits, exact to a millionth");
  return micros;
}

/** An agent as clients read it (contract, section 3). */
export function viewAgent(agent: Agent, tiers: readonly number[]) {
  return {
    name: agent.name,
    owner: agent.owner,
    memory_scope: agent.memoryScope,
    description: agent.description,
    instructions: agent.instructions,
    tier_policy: { tiers: agent.tierPolicy.tiers ?? tiers, models: agent.tierPolicy.models },
    tools: agent.tools,
    approvals: agent.approvals,
    approvals_required: agent.approvalsRequired,
    max_steps: agent.maxSteps,
    budget: {
      credits_per_day: agent.creditsPerDay === null ? null : agent.creditsPerDay / MICROS_PER_CREDIT,
    },
    status: agent.status,
    version: agent.version,
    created_at: timestamp(agent.createdAt),
    updated_at: timestamp(agent.updatedAt),
  };
}
