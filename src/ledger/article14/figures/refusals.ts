import type { EntryFields } from "../format/entry.ts";

/** Codes of refusals that follow from a rule: who may do what, and how much of it. */
const POLICY_CODES = new Set([
  "scope_missing",
  "agent_forbidden",
  "tier_forbidden",
  "model_forbidden",
  "tool_forbidden",
  "scope_forbidden",
  "credits_exhausted",
  "agent_stopped",
  "approval_required",
  "approval_changed",
  "approval_erased",
  "approval_decided",
  "rate_limited",
  "queue_full",
  "unauthenticated",
  "invalid_token",
  "origin_forbidden",
]);

/** Of those: an agent of that name was found before the rule was applied to it. */
const CODES_OF_KNOWN_AGENTS = new Set([
  "tier_forbidden",
  "model_forbidden",
  "tool_forbidden",
  "credits_exhausted",
  "agent_stopped",
  "queue_full",
]);

/** Expiry of a request: nobody was refused by it, and it is counted with the requests. */
const EXPIRED = "expired";

/**
 * `policy`: a rule forbade it. `unserved`: it asked for what is not there, or in a form that could not be served. Undefined
 * for what was not refused.
 */
export function refusalOf({ action, outcome, code = "" }: EntryFields): "policy" | "unserved" | undefined {
  if (outcome !== "denied" || (action === "oversight.expire" && code === EXPIRED)) return undefined;
  return POLICY_CODES.has(code) || action === "limit.exceeded" ? "policy" : "unserved";
}

/** Whether an entry shows that the agent that it names was there: anybody may ask for one that never was. */
export function showsAgent({ outcome, code = "", phase }: EntryFields): boolean {
  if (outcome === "denied") return CODES_OF_KNOWN_AGENTS.has(code);
  return outcome !== "failed" || phase === "outcome";
}
