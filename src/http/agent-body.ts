import Type, { type Static } from "typebox";
import { AGENT_NAME } from "../access/agent-names.ts";
import type { Agent, AgentFields } from "../access/agents.ts";
import { MEMORY_SCOPE, MEMORY_SCOPE_LENGTH } from "../access/memory-scope.ts";
import { OPEN_POLICY, type TierPolicy } from "../access/tier-policy.ts";
import { timestamp } from "../base/clock.ts";
import { MICROS_PER_CREDIT, toMicros } from "../base/credits.ts";
import { invalidField } from "../base/errors.ts";
import { GLOB_HINT, isGlob } from "../base/glob.ts";
import { refuseTwice } from "./body/body.ts";

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
  owner: Type.String({
    minLength: 1,
    maxLength: 200,
    description: "The person or team responsible for this agent.",
  }),
  memory_scope: Type.Union([MemoryScope, Type.Array(MemoryScope, { minItems: 1, maxItems: 32 })], {
    description: "The documents it may search: these paths and everything below them.",
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
    description: "The number of different people who must approve such a call. Default 1.",
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

/** Values for fields that the request creating an agent leaves out. */
export const AGENT_DEFAULTS = {
  description: null,
  instructions: null,
  tierPolicy: OPEN_POLICY,
  tools: ["*"],
  approvals: null,
  approvalsRequired: 1,
  maxSteps: MAX_STEPS,
  creditsPerDay: null,
};

/**
 * The fields present in a body. `before` is the policy that a partial policy updates.
 * @throws Problem 422 `validation_failed`
 */
export function agentFields(body: Static<typeof AgentChange>, before = OPEN_POLICY): Partial<AgentFields> {
  return {
    ...(body.owner === undefined ? {} : { owner: body.owner }),
    ...(body.memory_scope === undefined ? {} : { memoryScope: memoryScopePaths(body.memory_scope) }),
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

export function memoryScopePaths(scope: string | string[]): string[] {
  return typeof scope === "string" ? [scope] : [...new Set(scope)];
}

/** Changes only the parts given: a policy given new tiers keeps its denied models. */
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

/** @throws Problem 422 for a pattern that would not mean what its author intends */
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
