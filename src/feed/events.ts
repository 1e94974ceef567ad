import { isInside } from "../access/memory-scope.ts";
import { hasScope, type NamedScope } from "../access/scopes.ts";
import type { Enforcement, WorkspaceStatus } from "../access/workspaces.ts";
import type { FeedRights } from "./rights.ts";

/** A task without its text. Times are RFC 3339 and credits whole, as in `GET /v1/tasks/:id`. */
export interface TaskChange {
  readonly id: string;
  readonly agent: string;
  readonly tier: number;
  readonly status: string;
  readonly model: string | null;
  readonly credits_consumed: number;
  readonly steps: number;
  readonly error: { readonly code: string } | null;
  readonly created_by: string;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly finished_at: string | null;
}

/** Current usage of the workspace, or of the agent that a token acts as. */
export interface WorkspaceUsage {
  readonly tasks_running: number;
  readonly tasks_queued: number;
  /** The remainder of the workspace's limit, which all callers share. */
  readonly requests_left: number;
  readonly requests_per_minute: number;
  /** Only with `approvals:write`. */
  readonly approvals_pending?: number;
}

/**
 * The events of a workspace's feed and their data: ids, names, numbers and states, never text from users. Each is the
 * current state of one object, so a later event about it replaces an earlier one.
 */
export interface FeedEvents {
  /** Always first. Nothing is missed after it, so lists can be read now. */
  readonly "feed.open": Record<string, never>;
  /** So many changes have happened, or the caller's rights have changed, that everything must be read again. */
  readonly "feed.reset": Record<string, never>;
  readonly "task.changed": TaskChange;
  readonly "approval.changed": {
    readonly task: string;
    readonly call_id: string;
    readonly agent: string;
    readonly tool: string;
    /** `pending` `approved` `denied` `expired` `withdrawn`. */
    readonly status: string;
  };
  readonly "agent.changed": {
    readonly name: string;
    readonly status: "active" | "stopped" | "archived";
    readonly version: number;
  };
  /** Stopped or resumed together with its agents, or its limits or budget changed. */
  readonly "workspace.changed": {
    readonly status: WorkspaceStatus;
    /** Only with `settings:write`. */
    readonly limits?: {
      readonly requests_per_minute: number;
      readonly concurrent_tasks: number;
      readonly enforcement: Enforcement;
    };
    /** Only with `settings:write`. */
    readonly budget?: { readonly credits_per_month: number | null };
  };
  /** Its status or tools have changed. */
  readonly "connector.changed": {
    readonly name: string;
    readonly status: "ready" | "unreachable" | "disabled" | "removed";
  };
  readonly "token.changed": Record<string, never>;
  readonly "document.changed": {
    readonly id: string;
    readonly scope: string;
    readonly change: "written" | "deleted";
  };
  readonly usage: WorkspaceUsage;
  readonly "limit.exceeded": { readonly limit: string; readonly enforcement: Enforcement };
  readonly "budget.spent": {
    readonly budget: "agent_day" | "workspace_month";
    readonly agent: string | null;
    /** 80 or 100. */
    readonly percent: number;
  };
  /** A client's model call, outside of tasks, has ended: the latest one of its agent. */
  readonly "model.called": {
    readonly agent: string | null;
    /** The seq of its intent. */
    readonly intent: number;
    readonly model: string;
    readonly dialect: string;
    readonly status: "succeeded" | "failed" | "cancelled";
  };
  readonly "ledger.grown": { readonly size: number };
}

/** Events about a workspace, as opposed to events of the stream itself. */
export type FeedEventName = Exclude<keyof FeedEvents, "feed.open" | "feed.reset">;

/** The scope that a token needs for each event. Null: none. */
export const FEED_SCOPES: Readonly<Record<FeedEventName, NamedScope | null>> = {
  "task.changed": "tasks:read",
  "approval.changed": "approvals:write",
  "agent.changed": "agents:read",
  "workspace.changed": null,
  "connector.changed": "connectors:read",
  "token.changed": "tokens:write",
  "document.changed": "vault:read",
  usage: null,
  "limit.exceeded": "settings:write",
  "budget.spent": "settings:write",
  "model.called": "ledger:read",
  "ledger.grown": "ledger:read",
};

interface FeedMessage<Name extends FeedEventName> {
  readonly name: Name;
  /** Identifies the object: a later event with the same name and key replaces this one. */
  readonly key: string;
  readonly data: FeedEvents[Name];
  /** Additional data for callers with this scope. */
  readonly more?: { readonly scope: NamedScope; readonly data: Partial<FeedEvents[Name]> };
  /**
   * The agent that it concerns, by id or name: tokens of other agents do not get it. Null: it concerns no agent, so
   * no agent token gets it. Undefined: everybody gets it.
   */
  readonly agent?: number | string | null;
  /** A document's scope: callers that cannot see it do not get the event. */
  readonly path?: string;
}

export type FeedEvent = { [Name in FeedEventName]: FeedMessage<Name> }[FeedEventName];

/** Whether a caller may get an event. */
export function mayHear(rights: FeedRights, { name, agent, path }: FeedEvent): boolean {
  const scope = FEED_SCOPES[name];
  if (scope !== null && !hasScope(rights.scopes, scope)) return false;
  if (path !== undefined && !isInside(rights.boundary, path)) return false;
  if (rights.agent === null || agent === undefined) return true;
  return agent === rights.agent.id || agent === rights.agent.name;
}
