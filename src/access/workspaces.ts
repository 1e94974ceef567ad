import type { Clock } from "../base/clock.ts";
import { Problem } from "../base/errors.ts";
import type { Db, Tx } from "../store/db.ts";

export type Enforcement = "soft" | "enforced";

export interface WorkspaceLimits {
  readonly requestsPerMinute: number;
  readonly concurrentTasks: number;
  readonly enforcement: Enforcement;
}

export interface Workspace {
  readonly id: number;
  readonly name: string;
  readonly limits: WorkspaceLimits;
  /** Micro-credits a month; null: no budget. */
  readonly creditsPerMonth: number | null;
  readonly createdAt: number;
}

/** What a change names; what is left out stays. */
export interface WorkspaceChange {
  readonly requestsPerMinute?: number | undefined;
  readonly concurrentTasks?: number | undefined;
  readonly enforcement?: Enforcement | undefined;
  readonly creditsPerMonth?: number | null | undefined;
}

export const DEFAULT_WORKSPACE = "default";
export const WORKSPACE_NAME = "^[a-z0-9][a-z0-9_-]{0,62}$";

export interface Workspaces {
  /** By id. @throws Error for an id that no workspace has: ids come from tokens, which refer to one. */
  get(id: number): Workspace;
  find(name: string): Workspace | undefined;
  list(): Workspace[];
  /** @throws Problem 409 `workspace_exists` */
  create(tx: Tx, name: string): Promise<Workspace>;
  change(tx: Tx, id: number, change: WorkspaceChange): Promise<Workspace>;
}

interface Row {
  readonly id: number;
  readonly name: string;
  readonly requests_per_minute: number | null;
  readonly concurrent_tasks: number | null;
  readonly enforcement: Enforcement | null;
  readonly credits_per_month: number | null;
  readonly created_at: number;
}

const COLUMNS = "id, name, requests_per_minute, concurrent_tasks, enforcement, credits_per_month, created_at";

/**
 * The workspaces, all in memory: each call needs its workspace's limits. What a workspace does not set itself follows
 * the node's configuration.
 */
export async function openWorkspaces(db: Db, clock: Clock, defaults: WorkspaceLimits): Promise<Workspaces> {
  const byId = new Map<number, Workspace>();

  function fromRow(row: Row): Workspace {
    return {
      id: row.id,
      name: row.name,
      limits: {
        requestsPerMinute: row.requests_per_minute ?? defaults.requestsPerMinute,
        concurrentTasks: row.concurrent_tasks ?? defaults.concurrentTasks,
        enforcement: row.enforcement ?? defaults.enforcement,
      },
      creditsPerMonth: row.credits_per_month,
      createdAt: row.created_at,
    };
  }

  function remember(tx: Tx, workspace: Workspace): Workspace {
    const before = byId.get(workspace.id);
    tx.onRollback(() => {
      if (before) byId.set(workspace.id, before);
      else byId.delete(workspace.id);
    });
    byId.set(workspace.id, workspace);
    return workspace;
  }

  async function create(tx: Tx, name: string): Promise<Workspace> {
    const row = await tx.get<Row>(
      `INSERT INTO workspaces (name, created_at) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING RETURNING ${COLUMNS}`,
      [name, clock.now()],
    );
    if (!row) throw new Problem("workspace_exists", `A workspace named ${name} exists already.`);
    return remember(tx, fromRow(row));
  }

  function get(id: number): Workspace {
    const workspace = byId.get(id);
    if (!workspace) throw new Error(`no workspace has the id ${id}`);
    return workspace;
  }

  function find(name: string): Workspace | undefined {
    for (const workspace of byId.values()) if (workspace.name === name) return workspace;
    return undefined;
  }

  for (const row of await db.all<Row>(`SELECT ${COLUMNS} FROM workspaces`)) byId.set(row.id, fromRow(row));
  if (!find(DEFAULT_WORKSPACE)) await db.tx((tx) => create(tx, DEFAULT_WORKSPACE));

  return {
    get,
    find,
    list: () => [...byId.values()].sort((a, b) => (a.name < b.name ? -1 : 1)),
    create,
    async change(tx, id, change) {
      const { limits, creditsPerMonth } = get(id);
      const row = await tx.get<Row>(
        `UPDATE workspaces SET
           requests_per_minute = COALESCE($2, requests_per_minute),
           concurrent_tasks = COALESCE($3, concurrent_tasks),
           enforcement = COALESCE($4, enforcement),
           credits_per_month = $5
         WHERE id = $1 RETURNING ${COLUMNS}`,
        [
          id,
          change.requestsPerMinute ?? null,
          change.concurrentTasks ?? null,
          change.enforcement ?? null,
          change.creditsPerMonth === undefined ? creditsPerMonth : change.creditsPerMonth,
        ],
      );
      if (!row) throw new Error(`no workspace has the id ${id} (limits ${JSON.stringify(limits)})`);
      return remember(tx, fromRow(row));
    },
  };
}
