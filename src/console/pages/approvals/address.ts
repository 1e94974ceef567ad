import type { Approval } from "../../../http/api.ts";

/** What names one approval in its workspace. */
export interface ApprovalName {
  readonly task: string;
  readonly call: string;
}

/** What the list is of. The address holds it, so that it survives a reload. */
export interface View {
  readonly tab: "waiting" | "decided";
  /** Of what was decided alone; empty: any. */
  readonly agent: string;
  readonly tool: string;
  readonly decision: Decision;
}

export const DECISIONS = ["decided", "approved", "denied", "expired", "withdrawn"] as const;
export type Decision = (typeof DECISIONS)[number];

export const WAITING: View = { tab: "waiting", agent: "", tool: "", decision: "decided" };

export function viewOf(query: Readonly<Record<string, string>>): View {
  if (query.tab !== "decided") return WAITING;
  return {
    tab: "decided",
    agent: query.agent ?? "",
    tool: query.tool ?? "",
    decision: DECISIONS.find((decision) => decision === query.decision) ?? "decided",
  };
}

/** Where a list stands, or one of its approvals beside it. */
export function addressOf(view: View, name: ApprovalName | null = null): string {
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

/** One text for a name. */
export function keyOf({ task, call_id }: Pick<Approval, "task" | "call_id">): string {
  return `${task} ${call_id}`;
}
