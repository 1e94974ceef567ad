import type { Agent, Api } from "../../../http/api.ts";
import { linesOf, numberOf } from "../../parts/field.tsx";

export type AgentCreateBody = Api["POST /v1/agents"]["body"];
export type AgentChangeBody = Api["PATCH /v1/agents/:name"]["body"];

/** An agent as edited in the form: lists are strings with one entry on each line, numbers are as typed. */
export interface AgentDraft {
  readonly name: string;
  readonly owner: string;
  readonly description: string;
  readonly instructions: string;
  readonly memoryScope: string;
  /** Null: all configured tiers. */
  readonly tiers: readonly number[] | null;
  readonly allow: string;
  readonly deny: string;
  readonly tools: string;
  /** `destructive`: tools that connectors mark as destructive. `patterns`: tools that match `approvals`. */
  readonly approvalsBy: "destructive" | "patterns";
  readonly approvals: string;
  readonly approvalsRequired: string;
  readonly maxSteps: string;
  readonly creditsPerDay: string;
}

/** The contract's defaults for an agent with only a name, an owner and a memory scope. */
export const NEW_DRAFT: AgentDraft = {
  name: "",
  owner: "",
  description: "",
  instructions: "",
  memoryScope: "",
  tiers: null,
  allow: "*",
  deny: "",
  tools: "*",
  approvalsBy: "destructive",
  approvals: "",
  approvalsRequired: "1",
  maxSteps: "20",
  creditsPerDay: "",
};

export function draftOf(agent: Agent): AgentDraft {
  return {
    name: agent.name,
    owner: agent.owner,
    description: agent.description ?? "",
    instructions: agent.instructions ?? "",
    memoryScope: agent.memory_scope.join("\n"),
    tiers: agent.tier_policy.tiers,
    allow: agent.tier_policy.models.allow.join("\n"),
    deny: agent.tier_policy.models.deny.join("\n"),
    tools: agent.tools.join("\n"),
    approvalsBy: agent.approvals === null ? "destructive" : "patterns",
    approvals: (agent.approvals ?? []).join("\n"),
    approvalsRequired: String(agent.approvals_required),
    maxSteps: String(agent.max_steps),
    creditsPerDay: agent.budget.credits_per_day === null ? "" : String(agent.budget.credits_per_day),
  };
}

/** The effective values of a draft: patterns count only if approvals are chosen by pattern. */
function meaning(draft: AgentDraft) {
  return {
    owner: draft.owner.trim(),
    description: draft.description === "" ? null : draft.description,
    instructions: draft.instructions === "" ? null : draft.instructions,
    memory_scope: linesOf(draft.memoryScope),
    tiers: draft.tiers === null ? null : [...draft.tiers].sort((one, other) => one - other),
    allow: linesOf(draft.allow),
    deny: linesOf(draft.deny),
    tools: linesOf(draft.tools),
    approvals: approvalsOf(draft),
    approvals_required: Number(draft.approvalsRequired),
    max_steps: Number(draft.maxSteps),
    credits_per_day: numberOf(draft.creditsPerDay),
  };
}

export function approvalsOf(draft: AgentDraft): string[] | null {
  return draft.approvalsBy === "destructive" ? null : linesOf(draft.approvals);
}

type AgentDraftFields = ReturnType<typeof meaning>;
/** A part of an agent that is compared and changed as a whole. */
export type AgentDraftField = keyof AgentDraftFields;

export const PART_NAMES: Readonly<Record<AgentDraftField, string>> = {
  owner: "owner",
  description: "description",
  instructions: "instructions",
  memory_scope: "memory scope",
  tiers: "tiers",
  allow: "allowed models",
  deny: "denied models",
  tools: "tools",
  approvals: "approvals",
  approvals_required: "approvals required",
  max_steps: "steps",
  credits_per_day: "budget",
};
const PARTS = Object.keys(PART_NAMES) as readonly AgentDraftField[];

/** The parts in which two drafts differ in meaning, not only in notation. */
export function differences(before: AgentDraft, after: AgentDraft): readonly AgentDraftField[] {
  const [old, now] = [meaning(before), meaning(after)];
  return PARTS.filter((part) => JSON.stringify(old[part]) !== JSON.stringify(now[part]));
}

/** The body of a change from `before` to `after`: only the parts that differ. */
export function changeBody(before: AgentDraft, after: AgentDraft): AgentChangeBody {
  const parts = new Set(differences(before, after));
  const now = meaning(after);
  const models = {
    ...(parts.has("allow") ? { allow: now.allow } : {}),
    ...(parts.has("deny") ? { deny: now.deny } : {}),
  };
  const policy = {
    ...(parts.has("tiers") && now.tiers !== null ? { tiers: now.tiers } : {}),
    ...(parts.has("allow") || parts.has("deny") ? { models } : {}),
  };
  return {
    ...(parts.has("owner") ? { owner: now.owner } : {}),
    ...(parts.has("memory_scope") ? { memory_scope: now.memory_scope } : {}),
    ...(parts.has("description") ? { description: now.description } : {}),
    ...(parts.has("instructions") ? { instructions: now.instructions } : {}),
    ...(Object.keys(policy).length > 0 ? { tier_policy: policy } : {}),
    ...(parts.has("tools") ? { tools: now.tools } : {}),
    ...(parts.has("approvals") ? { approvals: now.approvals } : {}),
    ...(parts.has("approvals_required") ? { approvals_required: now.approvals_required } : {}),
    ...(parts.has("max_steps") ? { max_steps: now.max_steps } : {}),
    ...(parts.has("credits_per_day") ? { budget: { credits_per_day: now.credits_per_day } } : {}),
  };
}

/** The body that creates the agent: the three required fields, and whatever differs from the defaults. */
export function createBody(draft: AgentDraft): AgentCreateBody {
  const { owner, memory_scope } = meaning(draft);
  return { ...changeBody(NEW_DRAFT, draft), name: draft.name.trim(), owner, memory_scope };
}

/** The draft fields that make up each part. */
const FIELDS: Readonly<Record<AgentDraftField, readonly Exclude<keyof AgentDraft, "name">[]>> = {
  owner: ["owner"],
  description: ["description"],
  instructions: ["instructions"],
  memory_scope: ["memoryScope"],
  tiers: ["tiers"],
  allow: ["allow"],
  deny: ["deny"],
  tools: ["tools"],
  approvals: ["approvalsBy", "approvals"],
  approvals_required: ["approvalsRequired"],
  max_steps: ["maxSteps"],
  credits_per_day: ["creditsPerDay"],
};

/** The draft `now` with the changes made between `before` and `draft`: unchanged parts are taken from `now`. */
export function rebased(before: AgentDraft, draft: AgentDraft, now: AgentDraft): AgentDraft {
  const fields = differences(before, draft).flatMap((part) => FIELDS[part]);
  return { ...now, ...Object.fromEntries(fields.map((field) => [field, draft[field]])) };
}
