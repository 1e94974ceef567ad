import { Elysia } from "elysia";
import { timestamp } from "../../base/clock.ts";
import { COMMIT, VERSION } from "../../base/version.ts";
import { type EndpointContext, endpoint } from "../endpoint.ts";
import { requireOperator } from "./workspace.ts";

/** What a workspace has open on this server, and how long its ledger is. */
export interface WorkspaceState {
  readonly name: string;
  readonly status: "active" | "stopped";
  readonly tasksRunning: number;
  readonly tasksQueued: number;
  readonly ledgerEntries: number;
}

export interface StatusRouteParts {
  readonly startedAt: number;
  readonly engine: "sqlite" | "postgres";
  /** Why the server is not ready, as `/readyz` reports it. */
  failing(): Promise<readonly string[]>;
  workspaces(): Promise<readonly WorkspaceState[]>;
  connectors(): { readonly ready: number; readonly failing: readonly string[] };
}

/** The server's state over all workspaces, for `gatehouse status`. Neither in the contract nor in the API document. */
export function statusRoutes(endpoints: EndpointContext, parts: StatusRouteParts) {
  const read = endpoint(
    endpoints,
    {
      action: "node.status",
      scope: "admin",
      summary: "Read the state of this server",
      tag: "Operator",
      status: 200,
    },
    async ({ call }) => {
      requireOperator(call.caller.actor);
      const [failing, workspaces] = await Promise.all([parts.failing(), parts.workspaces()]);
      return {
        status: 200,
        body: {
          ...{ version: VERSION, commit: COMMIT ?? null, pid: process.pid },
          started_at: timestamp(parts.startedAt),
          ...{ store: parts.engine, ready: failing.length === 0, failing },
          memory_bytes: process.memoryUsage.rss(),
          connectors: parts.connectors(),
          workspaces: workspaces.map((each) => ({
            name: each.name,
            status: each.status,
            tasks_running: each.tasksRunning,
            tasks_queued: each.tasksQueued,
            ledger_entries: each.ledgerEntries,
          })),
        },
      };
    },
  );
  return new Elysia({ prefix: "/operator/status" }).get("", read.handle, {
    ...read.hook,
    detail: { hide: true },
  });
}
