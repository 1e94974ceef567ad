import type { Approval } from "../../../http/api.ts";

/** Identifies an approval within its workspace. */
export interface ApprovalName {
  readonly task: string;
  readonly call: string;
}

/** What the list shows. Kept in the address, so that it survives a reload. */
export interface ApprovalsView {
  readonly tab: "waiting" | "decided";
  /** Filter for decided approvals; empty: any agent. */
  readonly agent: string;
  readonly tool: string;
  readonly decision: DecisionFilter;
}

export const DECISIONS = ["decided", "approved", "denied", "expired", "withdrawn"] as const;
export type DecisionFilter = (typeof DECISIONS)[number];

export const WAITING: ApprovalsView = { tab: "waiting", agent: "", tool: "", decision: "decided" };

export function viewOf(query: Readonly<Record<string, string>>): ApprovalsView {
  if (query.tab !== "decided") return WAITING;
  return {
    tab: "decided",
    agent: query.agent ?? "",
    tool: query.tool ?? "",
    decision: DECISIONS.find((decision) => decision === query.decision) ?? "decided",
  };
}

/** The address of a list, or of one of its approvals. */
export function addressOf(view: ApprovalsView, name: ApprovalName | null = null): string {
  const place = name === null ? "" : `/${encodeURIComponent(name.task)}/${encodeURIComponent(name.call)}`;
  const search = new URLSearchParams();
  if (view.tab === "decided") {
    search.set("tab", "decided");
    if (view.agent !== "") search.set("agent", view.agent);
    if (view.tool !== "") search.set("tool", view.tool);
    if (view.decision !== "decided") search.set("decision", view.decision);
  }
  return `/console/approvals${place}${search.size === 0 ? "" : `?${search}`}`;
}

export function nameOf({ task, call_id }: Pick<Approval, "task" | "call_id">): ApprovalName {
  return { task, call: call_id };
}

/** A unique string for an approval's name. */
export function keyOf({ task, call_id }: Pick<Approval, "task" | "call_id">): string {
  return `${task} ${call_id}`;
}
