import type { RowSeals } from "../store/seals/seals.ts";
import type { Enforcement, Workspace, WorkspaceLimits, WorkspaceStatus } from "./workspaces.ts";

export interface WorkspaceRow {
  readonly id: number;
  readonly name: string;
  readonly status: WorkspaceStatus;
  readonly requests_per_minute: number | null;
  readonly concurrent_tasks: number | null;
  readonly enforcement: Enforcement | null;
  readonly credits_per_month: number | null;
  readonly created_at: number;
  readonly seal: Uint8Array | null;
}

/** What can be changed of a workspace. Null: the node's setting applies, or there is no budget. */
export type WorkspaceSettings = Pick<
  WorkspaceRow,
  "status" | "requests_per_minute" | "concurrent_tasks" | "enforcement" | "credits_per_month"
>;

export const WORKSPACE_COLUMNS =
  "id, name, status, requests_per_minute, concurrent_tasks, enforcement, credits_per_month, created_at, seal";

export const SELECT_WORKSPACES = `SELECT ${WORKSPACE_COLUMNS} FROM workspaces`;

/**
 * A row as it counts. Somebody else may have undone a stop or changed a limit, so a workspace whose seal does not match
 * is stopped until a person resumes it.
 */
export function effectiveRow(seals: RowSeals, row: WorkspaceRow): WorkspaceRow {
  return seals.fits("workspaces", row) ? row : { ...row, status: "stopped" };
}

/** @param defaults for settings that the workspace lacks */
export function workspaceFrom(row: WorkspaceRow, defaults: WorkspaceLimits): Workspace {
  return {
    id: row.id,
    name: row.name,
    status: row.status,
    limits: {
      requestsPerMinute: row.requests_per_minute ?? defaults.requestsPerMinute,
      concurrentTasks: row.concurrent_tasks ?? defaults.concurrentTasks,
      enforcement: row.enforcement ?? defaults.enforcement,
    },
    creditsPerMonth: row.credits_per_month,
    createdAt: row.created_at,
  };
}

/** Whether limits or the budget differ. */
export function hasOtherLimits(a: WorkspaceSettings, b: WorkspaceSettings): boolean {
  return (
    a.requests_per_minute !== b.requests_per_minute ||
    a.concurrent_tasks !== b.concurrent_tasks ||
    a.enforcement !== b.enforcement ||
    a.credits_per_month !== b.credits_per_month
  );
}
