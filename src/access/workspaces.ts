import type { Clock } from "../base/clock.ts";
import { Problem } from "../base/errors.ts";
import { Signal } from "../base/signal.ts";
import { ALONE } from "../nodes/local-nodes.ts";
import type { Nodes } from "../nodes/nodes.ts";
import { type Db, StoreUnavailable, type Tx } from "../store/db.ts";
import { type Halt, Halts } from "./halts.ts";
import { LatestReads } from "./latest-reads.ts";
import { type ReadStart, RememberedWorkspaces } from "./remembered-workspaces.ts";
import { isTrusted } from "./trust.ts";
import {
  effectiveRow,
  hasOtherLimits,
  SELECT_WORKSPACES,
  WORKSPACE_COLUMNS,
  type WorkspaceRow,
  type WorkspaceSettings,
} from "./workspace-rows.ts";

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
  /** Emits a workspace that was stopped or resumed, on whatever node. */
  readonly changed: Signal<number>;
  /** Emits a workspace whose limits or budget were changed, on whatever node, once the change is on disk. */
  readonly settingsChanged: Signal<number>;
  /** Emits a workspace that was created, on whatever node, once it is on disk. */
  readonly created: Signal<number>;
  /** By id. @throws Error if there is no such workspace: ids come from tokens, which refer to one */
  get(id: number): Workspace;
  find(name: string): Workspace | undefined;
  list(): Workspace[];
  /** @throws Problem 409 `workspace_exists` */
  create(tx: Tx, name: string): Promise<Workspace>;
  change(tx: Tx, id: number, change: WorkspaceChange): Promise<Workspace>;
  isStopped(id: number): boolean;
  /** Like `isStopped`, as this transaction sees it while changes on other nodes may be unknown. */
  isStoppedIn(tx: Tx, id: number): boolean | Promise<boolean>;
  /**
   * Reads a workspace again if another node may have created or changed it. Undefined if what is remembered is up to date, which it
   * always is in a store with one node.
   */
  freshen(id: number): Promise<void> | undefined;
  /** Like `find`, in the store, for a workspace that another node may just have created. */
  findStored(name: string): Promise<Workspace | undefined>;
  /** Makes all workspaces be read again when they are next used: changes may have been missed. */
  outdate(): void;
  /** Reads all workspaces again. @throws StoreUnavailable */
  readAgain(): Promise<void>;
  /** Stops or resumes a workspace in the store. */
  setStatus(tx: Tx, id: number, status: WorkspaceStatus): Promise<Workspace>;
  /** Stops the workspace immediately, whatever the store contains: the stop takes effect before it is written. */
  halt(id: number): Halt;
  /** The workspace's current halt. */
  haltOf(id: number): Halt | undefined;
}

const TOPIC = "workspace";

/**
 * All workspaces, in memory, since each call needs its workspace's limits. Settings that a workspace lacks come from
 * the node's configuration. In a store that nodes share, changes are made to the stored row, and other nodes read it again.
 */
export async function openWorkspaces(
  db: Db,
  clock: Clock,
  defaults: WorkspaceLimits,
  { isShared, bus }: Pick<Nodes, "isShared" | "bus"> = ALONE,
): Promise<Workspaces> {
  const remembered = new RememberedWorkspaces(defaults, isShared);
  const changed = new Signal<number>();
  const settingsChanged = new Signal<number>();
  const created = new Signal<number>();
  const halts = new Halts<number>((id) => changed.emit(id));
  const reads = new LatestReads<number>(async (id) => {
    const start = remembered.beginRead();
    const row = await db.urgent.get<WorkspaceRow>(`${SELECT_WORKSPACES} WHERE id = $1`, [id]);
    if (row) take(row, start);
  });

  function asHalted(workspace: Workspace): Workspace {
    return halts.has(workspace.id) ? { ...workspace, status: "stopped" } : workspace;
  }

  /** Takes over what was read from the store, and reports what other nodes have changed. */
  function take(stored: WorkspaceRow, start: ReadStart): void {
    const before = remembered.get(stored.id)?.row;
    const row = effectiveRow(db.seals, stored);
    if (!remembered.refresh(row, start)) return;
    if (!before) created.emit(row.id);
    else {
      if (before.status !== row.status) changed.emit(row.id);
      if (hasOtherLimits(before, row)) settingsChanged.emit(row.id);
    }
  }

  async function readAll(): Promise<void> {
    const start = remembered.beginRead();
    for (const row of await db.all<WorkspaceRow>(SELECT_WORKSPACES)) take(row, start);
  }

  /** Reports a change once it is on disk. */
  function reportChange(tx: Tx, id: number, signal: Signal<number>): void {
    tx.onCommit(() => {
      signal.emit(id);
      bus.send(TOPIC, { id }, { isUrgent: true });
    });
  }

  /**
   * The settings that a change begins with. Those of the only node are the ones that it knows, so a row that somebody
   * else has written is not adopted.
   */
  async function settingsOf(tx: Tx, id: number): Promise<WorkspaceSettings> {
    const row = isShared
      ? await tx.get<WorkspaceRow>(`${SELECT_WORKSPACES} WHERE id = $1`, [id])
      : remembered.get(id)?.row;
    if (!row) throw new Error(`no workspace has the id ${id}`);
    return isShared ? effectiveRow(tx.seals, row) : row;
  }

  /** Writes a workspace's settings and seals them. */
  async function write(tx: Tx, id: number, change: Partial<WorkspaceSettings>): Promise<Workspace> {
    const next = { ...(await settingsOf(tx, id)), ...change };
    const row = await tx.get<WorkspaceRow>(
      `UPDATE workspaces SET status = $2, requests_per_minute = $3, concurrent_tasks = $4, enforcement = $5,
         credits_per_month = $6 WHERE id = $1 RETURNING ${WORKSPACE_COLUMNS}`,
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
    return remembered.write(tx, row);
  }

  async function insert(tx: Tx, name: string): Promise<Workspace | undefined> {
    const row = await tx.get<WorkspaceRow>(
      `INSERT INTO workspaces (name, created_at) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING RETURNING ${WORKSPACE_COLUMNS}`,
      [name, clock.now()],
    );
    if (!row) return undefined;
    await tx.seals.seal(tx, "workspaces", { id: row.id });
    reportChange(tx, row.id, created);
    return remembered.write(tx, row);
  }

  function get(id: number): Workspace {
    const known = remembered.get(id);
    if (!known) throw new Error(`no workspace has the id ${id}`);
    return asHalted(known.workspace);
  }

  function find(name: string): Workspace | undefined {
    for (const { workspace } of remembered.values()) if (workspace.name === name) return asHalted(workspace);
    return undefined;
  }

  bus.listen(TOPIC, ({ id }) => {
    if (typeof id !== "number") return;
    reads.latest(id).catch((error: unknown) => {
      // It is read again before it is next used.
      remembered.outdate();
      if (!(error instanceof StoreUnavailable)) throw error;
    });
  });
  await readAll();
  if (!find(DEFAULT_WORKSPACE)) {
    await db.tx(null, (tx) => insert(tx, DEFAULT_WORKSPACE));
    // Another node may have created it first.
    await readAll();
  }

  return {
    changed,
    settingsChanged,
    created,
    get,
    find,
    list: () =>
      [...remembered.values()]
        .map(({ workspace }) => asHalted(workspace))
        .sort((a, b) => (a.name < b.name ? -1 : 1)),
    async create(tx, name) {
      const workspace = await insert(tx, name);
      if (!workspace) throw new Problem("workspace_exists", `A workspace named ${name} already exists.`);
      return workspace;
    },
    isStopped: (id) => get(id).status === "stopped",
    isStoppedIn(tx, id) {
      if (isTrusted(bus)) return get(id).status === "stopped";
      return halts.has(id) || settingsOf(tx, id).then(({ status }) => status === "stopped");
    },
    freshen(id) {
      if (!isShared || (remembered.isUpToDate(id) && isTrusted(bus))) return undefined;
      return reads.latest(id);
    },
    async findStored(name) {
      if (!isShared) return undefined;
      const start = remembered.beginRead();
      const row = await db.urgent.get<WorkspaceRow>(`${SELECT_WORKSPACES} WHERE name = $1`, [name]);
      if (row) take(row, start);
      return find(name);
    },
    outdate: () => remembered.outdate(),
    readAgain: readAll,
    halt: (id) => halts.halt(id),
    haltOf: (id) => halts.get(id),
    async setStatus(tx, id, status) {
      const workspace = await write(tx, id, { status });
      reportChange(tx, id, changed);
      return workspace;
    },
    async change(tx, id, change) {
      const workspace = await write(tx, id, {
        ...(change.requestsPerMinute === undefined ? {} : { requests_per_minute: change.requestsPerMinute }),
        ...(change.concurrentTasks === undefined ? {} : { concurrent_tasks: change.concurrentTasks }),
        ...(change.enforcement === undefined ? {} : { enforcement: change.enforcement }),
        ...(change.creditsPerMonth === undefined ? {} : { credits_per_month: change.creditsPerMonth }),
      });
      reportChange(tx, id, settingsChanged);
      return asHalted(workspace);
    },
  };
}
