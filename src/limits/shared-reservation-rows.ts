import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Nodes } from "../nodes/nodes.ts";
import { type Db, StoreUnavailable } from "../store/db.ts";

/**
 * How long the reservations of a dead node are kept. Its tasks are taken over and its lost calls charged before that:
 * without their reservations, others could spend what they are about to be charged.
 */
export const KEPT_MS = 30_000;

/** Identifies one reservation. */
export interface LeasedRow {
  readonly workspaceId: number;
  readonly owner: string;
  readonly nodeId: string;
  /** Distinguishes the reservations of a node. */
  readonly lease: number;
}

interface StoredRow extends LeasedRow {
  readonly budget: string;
  /** 1 if the node has died or left. */
  readonly isOrphan: number;
}

/** Reads all rows of this node and of dead ones: no more than there are calls in flight. */
const UNHELD = `SELECT r.workspace_id AS "workspaceId", r.owner, r.node_id AS "nodeId", r.lease, r.budget, nodes.id IS NULL AS "isOrphan"
  FROM budget_reservations AS r LEFT JOIN nodes ON nodes.id = r.node_id WHERE r.node_id = $1 OR nodes.id IS NULL`;
/** Sorted, so that nodes that delete the same rows lock them in one order. */
const DELETE = `DELETE FROM budget_reservations AS r
  USING (
    SELECT kept.ctid AS place FROM budget_reservations AS kept
    JOIN json_to_recordset($1::json) AS ended ("workspaceId" BIGINT, owner TEXT, "nodeId" TEXT, lease BIGINT)
      ON kept.workspace_id = ended."workspaceId" AND kept.owner = ended.owner
      AND kept.node_id = ended."nodeId" AND kept.lease = ended.lease
    ORDER BY kept.workspace_id, kept.owner, kept.budget FOR UPDATE OF kept
  ) AS locked WHERE r.ctid = locked.place`;

/** @throws StoreUnavailable */
export async function deleteRows(db: Pick<Db, "run">, rows: readonly LeasedRow[]): Promise<void> {
  if (rows.length === 0) return;
  const named = rows.map(({ workspaceId, owner, nodeId, lease }) => ({ workspaceId, owner, nodeId, lease }));
  await db.run(DELETE, [JSON.stringify(named)]);
}

export interface ReservationSweepParts {
  readonly db: Db;
  readonly nodes: Pick<Nodes, "id">;
  readonly clock: Pick<Clock, "monotonic">;
  readonly log: Pick<Log, "warn">;
}

/** What this process has reserved, and whom it tells of what the sweep has released. */
export interface SweptLeases {
  isHeld(owner: string, lease: number): boolean;
  released(budgets: readonly string[]): void;
}

/**
 * Deletes rows that no call needs: those of dead nodes after a while, and those of this node that could not be deleted
 * when their call ended.
 */
export class ReservationSweep {
  readonly #parts: ReservationSweepParts;
  readonly #leases: SweptLeases;
  /** When this node learned that another one is dead, by the monotonic clock. */
  readonly #deadSince = new Map<string, number>();
  #running: Promise<void> | null = null;

  constructor(parts: ReservationSweepParts, leases: SweptLeases) {
    this.#parts = parts;
    this.#leases = leases;
  }

  /** Never rejects: while the store is away, the next beat tries again. */
  async run(): Promise<void> {
    this.#running ??= this.#sweep()
      .catch((error: unknown) => {
        if (!(error instanceof StoreUnavailable)) throw error;
      })
      .finally(() => {
        this.#running = null;
      });
    await this.#running;
  }

  async #sweep(): Promise<void> {
    const { db, nodes, log } = this.#parts;
    const { id } = nodes;
    const rows = await db.all<StoredRow>(UNHELD, [id]);
    const orphans = rows.filter(({ isOrphan }) => isOrphan === 1);
    const due = this.#dueNodes(orphans);
    // A row of this node is read after its lease was noted, so one without a lease is left over.
    const ended = rows.filter(({ nodeId, owner, lease, isOrphan }) =>
      isOrphan === 1 ? due.has(nodeId) : nodeId === id && !this.#leases.isHeld(owner, lease),
    );
    if (ended.length === 0) return;
    await deleteRows(db, ended);
    if (due.size > 0) log.warn("reservations of nodes that have died are released", { nodes: due.size });
    this.#leases.released(ended.map(({ budget }) => budget));
  }

  /** The nodes that have been dead for long enough. */
  #dueNodes(orphans: readonly StoredRow[]): ReadonlySet<string> {
    const now = this.#parts.clock.monotonic();
    const dead = new Set(orphans.map(({ nodeId }) => nodeId));
    for (const node of this.#deadSince.keys()) if (!dead.has(node)) this.#deadSince.delete(node);
    const due = new Set<string>();
    for (const node of dead) {
      const since = this.#deadSince.get(node) ?? now;
      this.#deadSince.set(node, since);
      if (now - since >= KEPT_MS) due.add(node);
    }
    return due;
  }
}
