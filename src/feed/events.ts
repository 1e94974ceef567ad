import { isInside } from "../access/memory-scope.ts";
import { hasScope, type NamedScope } from "../access/scopes.ts";
import type { Enforcement, WorkspaceStatus } from "../access/workspaces.ts";
import type { Rights } from "./rights.ts";

/** A task without anybody's texts. Times are RFC 3339, credits are whole ones, as in `GET /v1/tasks/:id`. */
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

/** What a workspace has in use now; of a token that acts as an agent, what that agent has. */
export interface Usage {
  readonly tasks_running: number;
  readonly tasks_queued: number;
  /** Of the workspace's limit, which all of its callers share. */
  readonly requests_left: number;
  readonly requests_per_minute: number;
  /** For who has `approvals:write`. */
  readonly approvals_pending?: number;
}

/**
 * The events of a workspace's feed by name, with the data that each carries: ids, names, numbers and states, and never what
 * somebody wrote. Each is the present state of one thing, so that a later one of the same thing replaces it.
 */
export interface FeedEvents {
  /** The first one: from here on nothing is missed, so that lists are read now. */
  readonly "feed.open": Record<string, never>;
  /** So much has changed, or the caller's rights have, that all lists are to be read anew. */
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
  /** Stopped or resumed, and with it all of its agents; or its limits or its budget were changed. */
  readonly "workspace.changed": {
    readonly status: WorkspaceStatus;
    /** For who has `settings:write`. */
    readonly limits?: {
      readonly requests_per_minute: number;
      readonly concurrent_tasks: number;
      readonly enforcement: Enforcement;
    };
    /** For who has `settings:write`. */
    readonly budget?: { readonly credits_per_month: number | null };
  };
  /** Its status or its tools are others. */
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
  readonly usage: Usage;
  readonly "limit.exceeded": { readonly limit: string; readonly enforcement: Enforcement };
  readonly "budget.spent": {
    readonly budget: "agent_day" | "workspace_month";
    readonly agent: string | null;
    /** 80 or 100. */
    readonly percent: number;
  };
  readonly "ledger.grown": { readonly size: number };
}

/** The names of what is told of a workspace; the others are of the stream itself. */
export type ToldName = Exclude<keyof FeedEvents, "feed.open" | "feed.reset">;

/** The scope that a token needs to be told. Null: every token of the workspace is. */
export const FEED_SCOPES: Readonly<Record<ToldName, NamedScope | null>> = {
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
  "ledger.grown": "ledger:read",
};

interface Told<Name extends ToldName> {
  readonly name: Name;
  /** Which thing of its kind it is about: a later event of the same name and key replaces it. */
  readonly key: string;
  readonly data: FeedEvents[Name];
  /** What is told besides to who has this scope. */
  readonly more?: { readonly scope: NamedScope; readonly data: Partial<FeedEvents[Name]> };
  /**
   * The agent that it is of, by id or by name: a token that acts as another one is not told. Null: no agent's, so that no
   * token of an agent is told. Undefined: everybody's.
   */
  readonly agent?: number | string | null;
  /** Where a document lies: who does not see so far is not told. */
  readonly path?: string;
}

export type FeedEvent = { [Name in ToldName]: Told<Name> }[ToldName];

/** Whether a caller is told of an event. */
export function mayHear(rights: Rights, { name, agent, path }: FeedEvent): boolean {
  const scope = FEED_SCOPES[name];
  if (scope !== null && !hasScope(rights.scopes, scope)) return false;
  if (path !== undefined && !isInside(rights.boundary, path)) return false;
  if (rights.agent === null || agent === undefined) return true;
  return agent === rights.agent.id || agent === rights.agent.name;
}
