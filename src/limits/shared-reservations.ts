import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { BusMessage } from "../nodes/bus.ts";
import type { Nodes } from "../nodes/nodes.ts";
import { type Db, StoreUnavailable, type Tx } from "../store/db.ts";
import { BudgetQueues } from "./budget-queues.ts";
import type { QueueTicket, Reservation, Reservations, UnspentBudget } from "./reservations.ts";
import { deleteRows, type LeasedRow, ReservationSweep } from "./shared-reservation-rows.ts";

const RELEASED = "budget.released";
const AWAITED = "budget.awaited";
/** How often a node repeats that it waits for a budget. Must be less than `AWAITED_MS`. */
const REPEAT_MS = 1_000;
/** For how long others tell it of releases. */
const AWAITED_MS = 3_000;
/** A node may hear that a budget is awaited only after it has released a part of it. */
const RECENT_MS = 1_000;
/** A sum is read again if something was released here while it was read. After that, the next release wakes the call. */
const MOST_READS = 3;

const SUMS = `SELECT budget, LEAST(SUM(micros), ${Number.MAX_SAFE_INTEGER}) AS micros FROM budget_reservations
  WHERE workspace_id = $1 AND budget = ANY ($2::text[]) GROUP BY budget`;
/** The row of a task that was taken over is that of the call that its former node made. */
const TAKE = `INSERT INTO budget_reservations (workspace_id, owner, budget, micros, node_id, lease)
  VALUES ($1, $2, $3, $4, $5, $6)
  ON CONFLICT (workspace_id, owner, budget) DO UPDATE
    SET micros = excluded.micros, node_id = excluded.node_id, lease = excluded.lease`;
const SETTLE =
  "DELETE FROM budget_reservations WHERE workspace_id = $1 AND owner = $2 AND node_id = $3 AND lease = $4";
const SETTLE_LOST = "DELETE FROM budget_reservations WHERE workspace_id = $1 AND owner = $2";

interface Lease extends LeasedRow {
  readonly budgets: readonly string[];
}

export interface SharedReservationsParts {
  readonly db: Db;
  readonly nodes: Pick<Nodes, "id" | "bus" | "beat">;
  readonly clock: Pick<Clock, "monotonic">;
  readonly log: Pick<Log, "warn">;
}

/**
 * Reservations as rows that all nodes see. A row is taken and read in transactions that have locked the end of the
 * workspace's ledger, so the sum of a budget's rows is exact. Rows end with the transaction that charges the call, or
 * right after the call.
 *
 * Messages only make waiting calls of other nodes try earlier than at their next look.
 */
export class SharedReservations implements Reservations {
  readonly #parts: SharedReservationsParts;
  readonly #queues = new BudgetQueues();
  readonly #leases = new Map<string, Lease>();
  /** Distinguishes this process's reservations, also those of one owner. */
  #lastLease = 0;
  /** Leases that have ended, whose rows are not deleted yet. */
  #ended: Lease[] = [];
  #deleting: Promise<void> | null = null;
  /** Changes with each release that this process knows of. */
  #releases = 0;
  /** When this node last said that it waits for a budget. All times are monotonic. */
  readonly #announced = new Map<string, number>();
  /** When another node last said so. */
  readonly #awaited = new Map<string, number>();
  /** When this node last released a part of a budget. */
  readonly #released = new Map<string, number>();

  constructor(parts: SharedReservationsParts) {
    this.#parts = parts;
    const { nodes } = parts;
    const sweep = new ReservationSweep(parts, {
      isHeld: (owner, lease) => this.#leases.get(owner)?.lease === lease,
      released: (budgets) => this.#tell(budgets),
    });
    nodes.beat.listen(() => {
      this.#forgetOld();
      void sweep.run();
    });
    nodes.bus.listen(RELEASED, (message) => this.#wake(budgetOf(message)));
    nodes.bus.listen(AWAITED, (message) => this.#noteAwaited(budgetOf(message)));
  }

  get leases(): number {
    return this.#leases.size;
  }

  async withoutRoom(
    tx: Tx,
    workspaceId: number,
    budgets: readonly UnspentBudget[],
    queues: boolean,
  ): Promise<string | null> {
    const names = `{${budgets.map(({ budget }) => budget).join(",")}}`;
    for (let read = 1; ; read++) {
      const { budget: awaited } =
        (queues && budgets.find(({ budget }) => this.#queues.waiting(budget) > 0)) || {};
      if (awaited !== undefined) return awaited;
      const releases = this.#releases;
      const rows = await tx.all<{ budget: string; micros: number }>(SUMS, [workspaceId, names]);
      const reserved = new Map(rows.map(({ budget, micros }) => [budget, micros]));
      const full = budgets.find(({ budget, micros }) => (reserved.get(budget) ?? 0) >= micros);
      if (!full) return null;
      if (releases !== this.#releases && read < MOST_READS) continue;
      this.#announce(full.budget);
      return full.budget;
    }
  }

  take(tx: Tx, { workspaceId, owner, budgets, amount }: Reservation): boolean {
    if (this.#leases.has(owner)) return false;
    this.#lastLease += 1;
    const nodeId = this.#parts.nodes.id;
    const lease: Lease = {
      workspaceId,
      owner,
      nodeId,
      lease: this.#lastLease,
      budgets: [...new Set(budgets)],
    };
    this.#leases.set(owner, lease);
    for (const budget of lease.budgets) {
      tx.write(TAKE, [workspaceId, owner, budget, amount, nodeId, lease.lease]);
    }
    // The row is deleted too: the transaction may have been committed although its outcome is unknown.
    tx.onRollback(() => this.#release(lease));
    return true;
  }

  settle(tx: Tx, workspaceId: number, owner: string): void {
    const lease = this.#leases.get(owner);
    if (!lease) return;
    tx.write(SETTLE, [workspaceId, owner, lease.nodeId, lease.lease]);
    tx.onCommit(() => {
      if (this.#leases.get(owner) !== lease) return;
      this.#leases.delete(owner);
      this.#tell(lease.budgets);
    });
  }

  settleLost(tx: Tx, workspaceId: number, owner: string): void {
    tx.write(SETTLE_LOST, [workspaceId, owner]);
  }

  release(owner: string): void {
    const lease = this.#leases.get(owner);
    if (lease) this.#release(lease);
  }

  join(budget: string): QueueTicket {
    return this.#queues.join(budget);
  }

  #release(lease: Lease): void {
    if (this.#leases.get(lease.owner) !== lease) return;
    this.#leases.delete(lease.owner);
    this.#ended.push(lease);
    this.#deleting ??= this.#deleteEnded().finally(() => {
      this.#deleting = null;
    });
  }

  /** While the store is away the rows stay. The sweep deletes them then, since no lease has them any more. */
  async #deleteEnded(): Promise<void> {
    // Lets calls that end in the same turn share the statement.
    await Promise.resolve();
    while (this.#ended.length > 0) {
      const ended = this.#ended;
      this.#ended = [];
      try {
        await deleteRows(this.#parts.db, ended);
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) throw error;
      }
      this.#tell(ended.flatMap(({ budgets }) => budgets));
    }
  }

  /** Makes waiting calls try again, here and on nodes that wait. */
  #tell(budgets: readonly string[]): void {
    const now = this.#parts.clock.monotonic();
    for (const budget of new Set(budgets)) {
      this.#released.set(budget, now);
      if (this.#isAwaited(budget, now)) this.#parts.nodes.bus.send(RELEASED, { budget });
      this.#wake(budget);
    }
  }

  #wake(budget: string): void {
    this.#releases += 1;
    this.#queues.wakeFirst(budget);
  }

  #announce(budget: string): void {
    const now = this.#parts.clock.monotonic();
    const last = this.#announced.get(budget);
    if (last !== undefined && now - last < REPEAT_MS) return;
    this.#announced.set(budget, now);
    this.#parts.nodes.bus.send(AWAITED, { budget });
  }

  #noteAwaited(budget: string): void {
    const now = this.#parts.clock.monotonic();
    this.#awaited.set(budget, now);
    const released = this.#released.get(budget);
    if (released !== undefined && now - released <= RECENT_MS)
      this.#parts.nodes.bus.send(RELEASED, { budget });
  }

  #isAwaited(budget: string, now: number): boolean {
    const at = this.#awaited.get(budget);
    return at !== undefined && now - at <= AWAITED_MS;
  }

  #forgetOld(): void {
    const now = this.#parts.clock.monotonic();
    for (const times of [this.#announced, this.#awaited, this.#released]) {
      for (const [budget, at] of times) if (now - at > AWAITED_MS) times.delete(budget);
    }
  }
}

function budgetOf({ budget }: BusMessage): string {
  return String(budget);
}
