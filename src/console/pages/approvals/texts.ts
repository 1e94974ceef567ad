import type { Approval } from "../../../http/api.ts";
import { plural } from "../../parts/text.tsx";
import type { DecisionAnswer } from "./decide.tsx";

/** What came of a decision, for who has made it. */
export function answerText(
  { status }: DecisionAnswer,
  { tool, agent, required, approved_by }: Approval,
): string {
  if (status === "approved") return `Approved: ${agent} calls ${tool}.`;
  if (status === "denied") return `Denied: ${agent} goes on without ${tool}.`;
  // With other arguments the earlier approvals count no more; one person is missing at least.
  const left = Math.max(1, required - approved_by.length - 1);
  return `Your approval of ${tool} is counted. ${plural(left, "more person has", "more people have")} to approve.`;
}

/** What has come anew, to be said to who does not see the list. */
export function arrivalText(arrived: readonly Approval[]): string {
  const [first] = arrived;
  if (!first) return "";
  if (arrived.length > 1) return `${arrived.length} new calls wait for a decision.`;
  return `New: ${first.agent} asks for ${first.tool}.`;
}
