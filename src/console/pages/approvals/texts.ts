import type { Approval } from "../../../http/api.ts";
import { plural } from "../../parts/text.tsx";
import type { DecisionAnswer } from "./decide.tsx";

/** The result of a decision, for the person who made it. */
export function answerText(
  { status }: DecisionAnswer,
  { tool, agent, required, approved_by }: Approval,
): string {
  if (status === "approved") return `Approved: ${agent} calls ${tool}.`;
  if (status === "denied") return `Denied: ${agent} continues without ${tool}.`;
  // Changed arguments reset earlier approvals, so at least one more person is needed.
  const left = Math.max(1, required - approved_by.length - 1);
  return `Your approval of ${tool} is counted. ${plural(left, "more person has", "more people have")} to approve.`;
}

/** Announces new approvals to screen readers. */
export function arrivalText(arrived: readonly Approval[]): string {
  const [first] = arrived;
  if (!first) return "";
  if (arrived.length > 1) return `${arrived.length} new calls are waiting for a decision.`;
  return `New: ${first.agent} asks for ${first.tool}.`;
}
