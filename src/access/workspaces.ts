import type { Clock } from "../base/clock.ts";
import { Problem } from "../base/errors.ts";
import { Signal } from "../base/signal.ts";
import type { Db, Tx } from "../store/db.ts";
import { type Halt, Halts } from "./halts.ts";

export type Enforcement = "soft" | "enforced";

export interface WorkspaceLimits {
  readonly requestsPerMinute: number;
  readonly concurrentTasks: number;
  readonly enforcement: Enforcement;
}

export type WorkspaceStatus = "active" | "stopped";

export interface Workspace {
  readonly id: number;
  readonly name: string;
  /** `stopped`: none of its agents works, and none of its tools is called. */
  readonly status: WorkspaceStatus;
  readonly limits: WorkspaceLimits;
  /** Micro-credits per month. Null: no budget. */
  readonly creditsPerMonth: number | null;
  readonly createdAt: number;
}

/** A change of settings. Absent fields stay as they are. */
export interface WorkspaceChange {
  readonly requestsPerMinute?: number | undefined;
  readonly concurrentTasks?: number | undefined;
  readonly enforcement?: Enforcement | undefined;
  readonly creditsPerMonth?: number | null | undefined;
}

export const DEFAULT_WORKSPACE = "default";
export const WORKSPACE_NAME = "^[a-z0-9][a-z0-9_-]{0,62}$";

export interface Workspaces {
  /** Emits a workspace that was stopped or resumed. */
  readonly changed: Signal<number>;
  /** Emits a workspace whose limits or budget were changed, once the change is on disk. */
  readonly settingsChanged: Signal<number>;
  /** By id. @throws Error if there is no such workspace: ids come from tokens, which refer to one */
  get(id: number): Workspace;
  find(name: string): Workspace | undefined;
  list(): Workspace[];
  /** @throws Problem 409 `workspace_exists` */
  create(tx: Tx, name: string): Promise<Workspace>;
  change(tx: Tx, id: number, change: WorkspaceChange): Promise<Workspace>;
  isStopped(id: number): boolean;
  /** Stops or resumes a workspace in the store. */
  setStatus(tx: Tx, id: number, status: WorkspaceStatus): Promise<Workspace>;
  /** Stops the workspace immediately, whatever the store contains: the stop takes effect before it is written. */
  halt(id: number): Halt;
  /** The workspace's current halt. */
  haltOf(id: number): Halt | undefined;
}

interface WorkspaceRow {
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

type Settings = Pick<
  WorkspaceRow,
  "status" | "requests_per_minute" | "concurrent_tasks" | "enforcement" | "credits_per_month"
>;

const COLUMNS =
  "id, name, status, requests_per_minute, concurrent_tasks, enforcement, credits_per_month, created_at, seal";

/**
 * All workspaces, in memory, since each call needs its workspace's limits. Settings that a workspace lacks come from
 * the node's configuration.
 */
export async function openWorkspaces(db: Db, clock: Clock, defaults: WorkspaceLimits): Promise<Workspaces> {
  const byId = new Map<number, Workspace>();
  /** The columns of each workspace as this process has read or written them; null if the node's setting applies. */
  const settings = new Map<number, Settings>();
  const changed = new Signal<number>();
  const settingsChanged = new Signal<number>();
  const halts = new Halts<number>((id) => changed.emit(id));

  function asHalted(workspace: Workspace): Workspace {
    return halts.has(workspace.id) ? { ...workspace, status: "stopped" } : workspace;
  }

  function fromRow(row: WorkspaceRow): Workspace {
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

  function remember(tx: Tx, row: WorkspaceRow): Workspace {
    const before = byId.get(row.id);
    const settingsBefore = settings.get(row.id);
    tx.onRollback(() => {
      if (before && settingsBefore) {
        byId.set(row.id, before);
        settings.set(row.id, settingsBefore);
      } else {
        byId.delete(row.id);
        settings.delete(row.id);
      }
    });
    const workspace = fromRow(row);
    byId.set(row.id, workspace);
    settings.set(row.id, row);
    return workspace;
  }

  /**
   * Writes a workspace's settings and seals them. Unchanged settings are written as this process knows them, so a row
   * that somebody else has written is not adopted.
   */
  async function write(tx: Tx, id: number, change: Partial<Settings>): Promise<Workspace> {
    const known = settings.get(id);
    if (!known) throw new Error(`no workspace has the id ${id}`);
    const next = { ...known, ...change };
    const row = await tx.get<WorkspaceRow>(
      `UPDATE workspaces SET status = $2, requests_per_minute = $3, concurrent_tasks = $4, enforcement = $5,
         credits_per_month = $6 WHERE id = $1 RETURNING ${COLUMNS}`,
      [
        id,
        next.status,
        next.requests_per_minute,
        next.concurrent_tasks,
        next.enforcement,
        next.credits_per_month,
      ],
    );
    if (!row) throw new Error(`no workspace has the id ${id}`);
    await tx.seals.seal(tx, "workspaces", { id });
    return remember(tx, row);
  }

  async function create(tx: Tx, name: string): Promise<Workspace> {
    const row = await tx.get<WorkspaceRow>(
      `INSERT INTO workspaces (name, created_at) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING RETURNING ${COLUMNS}`,
      [name, clock.now()],
    );
    if (!row) throw new Problem("workspace_exists", `A workspace named ${name} already exists.`);
    await tx.seals.seal(tx, "workspaces", { id: row.id });
    return remember(tx, row);
  }

  function get(id: number): Workspace {
    const workspace = byId.get(id);
    if (!workspace) throw new Error(`no workspace has the id ${id}`);
    return asHalted(workspace);
  }

  function find(name: string): Workspace | undefined {
    for (const workspace of byId.values()) if (workspace.name === name) return asHalted(workspace);
    return undefined;
  }

  for (const row of await db.all<WorkspaceRow>(`SELECT ${COLUMNS} FROM workspaces`)) {
    // Somebody else may have undone a stop or changed a limit. The workspace counts as stopped until a person resumes
    // it.
    const status = db.seals.fits("workspaces", row) ? row.status : "stopped";
    byId.set(row.id, { ...fromRow(row), status });
    settings.set(row.id, { ...row, status });
  }
  if (!find(DEFAULT_WORKSPACE)) await db.tx(null, (tx) => create(tx, DEFAULT_WORKSPACE));

  return {
    changed,
    settingsChanged,
    get,
    find,
    list: () => [...byId.values()].map(asHalted).sort((a, b) => (a.name < b.name ? -1 : 1)),
    create,
    isStopped: (id) => get(id).status === "stopped",
    halt: (id) => halts.halt(id),
    haltOf: (id) => halts.get(id),
    async setStatus(tx, id, status) {
      const workspace = await write(tx, id, { status });
      tx.onCommit(() => changed.emit(id));
      return workspace;
    },
    async change(tx, id, change) {
      const { status } = get(id);
      const workspace = await write(tx, id, {
        // The effective status, which differs from the row if somebody else wrote it.
        status: byId.get(id)?.status ?? status,
        ...(change.requestsPerMinute === undefined ? {} : { requests_per_minute: change.requestsPerMinute }),
        ...(change.concurrentTasks === undefined ? {} : { concurrent_tasks: change.concurrentTasks }),
        ...(change.enforcement === undefined ? {} : { enforcement: change.enforcement }),
        ...(change.creditsPerMonth === undefined ? {} : { credits_per_month: change.creditsPerMonth }),
      });
      tx.onCommit(() => settingsChanged.emit(id));
      return asHalted(workspace);
    },
  };
}
