import { RULE_CODES } from "../../../base/errors.ts";
import type { ReportEntryFields } from "../format/entry.ts";

/**
 * A call that waits for a person is denied for the time being. This is not an error code, since no caller receives
 * it.
 */
const APPROVAL_REQUIRED = "approval_required";

/** Codes of rules that are applied only after an agent of that name was found. */
const CODES_OF_KNOWN_AGENTS = new Set([
  "tier_forbidden",
  "model_forbidden",
  "tool_forbidden",
  "credits_exhausted",
  "agent_stopped",
  "queue_full",
]);

/** Expiry of a request refuses nobody. It is counted with the requests. */
const EXPIRED = "expired";

/**
 * `policy`: a rule forbade it. `unserved`: the resource did not exist, or the request could not be served in this
 * form. Undefined if it was not refused.
 */
export function refusalOf({
  action,
  outcome,
  code = "",
}: ReportEntryFields): "policy" | "unserved" | undefined {
  if (outcome !== "denied" || (action === "oversight.expire" && code === EXPIRED)) return undefined;
  return RULE_CODES.has(code) || code === APPROVAL_REQUIRED || action === "limit.exceeded"
    ? "policy"
    : "unserved";
}

/** Whether an entry proves that the agent it names existed. A request may name an agent that never did. */
export function showsAgent({ outcome, code = "", phase }: ReportEntryFields): boolean {
  if (outcome === "denied") return CODES_OF_KNOWN_AGENTS.has(code);
  return outcome !== "failed" || phase === "outcome";
}
