import { RULE_CODES } from "../../../base/errors.ts";
import type { EntryFields } from "../format/entry.ts";

/** A call that waits for a person is denied for the time being; it is no error code, since nobody is answered with it. */
const APPROVAL_REQUIRED = "approval_required";

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
  return RULE_CODES.has(code) || code === APPROVAL_REQUIRED || action === "limit.exceeded"
    ? "policy"
    : "unserved";
}

/** Whether an entry shows that the agent that it names was there: anybody may ask for one that never was. */
export function showsAgent({ outcome, code = "", phase }: EntryFields): boolean {
  if (outcome === "denied") return CODES_OF_KNOWN_AGENTS.has(code);
  return outcome !== "failed" || phase === "outcome";
}
