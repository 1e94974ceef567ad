import type { SqlValue } from "../store/db.ts";
import type { Agent, AgentFields } from "./agents.ts";
import { KeptJson } from "./kept-json.ts";
import type { TierPolicy } from "./tier-policy.ts";

export interface AgentRow
  extends Pick<Agent, "id" | "name" | "owner" | "description" | "instructions" | "status" | "version"> {
  readonly workspace_id: number;
  readonly memory_scope: string;
  readonly tier_policy: string;
  readonly tools: string;
  readonly approvals: string | null;
  readonly approvals_required: number;
  readonly max_steps: number;
  readonly credits_per_day: number | null;
  readonly created_at: number;
  readonly updated_at: number;
  readonly seal: Uint8Array | null;
}

export const AGENT_COLUMNS =
  "id, workspace_id, name, owner, description, instructions, memory_scope, tier_policy, tools, approvals, " +
  "approvals_required, max_steps, " +
  "credits_per_day, status, version, created_at, updated_at, seal";

/** The bytes of an agent's texts, as SQL. */
export const TEXT_BYTES = ["description", "instructions", "memory_scope", "tier_policy", "tools", "approvals"]
  .map((column) => `COALESCE(octet_length(${column}), 0)`)
  .join(" + ");

/** The values of the columns from `owner` to `credits_per_day`. */
export function fieldValues(fields: AgentFields): SqlValue[] {
  return [
    fields.owner,
    fields.description,
    fields.instructions,
    JSON.stringify(fields.memoryScope),
    JSON.stringify(fields.tierPolicy),
    JSON.stringify(fields.tools),
    fields.approvals && JSON.stringify(fields.approvals),
    fields.approvalsRequired,
    fields.maxSteps,
    fields.creditsPerDay,
  ];
}

const policies = new KeptJson<TierPolicy>();
const globs = new KeptJson<readonly string[]>();

export function agentFrom(row: AgentRow): Agent {
  return {
    id: row.id,
    name: row.name,
    owner: row.owner,
    description: row.description,
    instructions: row.instructions,
    memoryScope: JSON.parse(row.memory_scope) as string[],
    tierPolicy: policies.parse(row.tier_policy),
    tools: globs.parse(row.tools),
    approvals: row.approvals === null ? null : globs.parse(row.approvals),
    approvalsRequired: row.approvals_required,
    maxSteps: row.max_steps,
    creditsPerDay: row.credits_per_day,
    status: row.status,
    version: row.version,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
