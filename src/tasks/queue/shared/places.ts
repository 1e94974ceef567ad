import type { Workspace } from "../../../access/workspaces.ts";
import type { Clock } from "../../../base/clock.ts";
import type { Log } from "../../../base/log.ts";
import type { Nodes } from "../../../nodes/nodes.ts";
import { type Db, StoreUnavailable, type Tx } from "../../../store/db.ts";
import type { Scheduler } from "../scheduler.ts";

/** Places of a workspace were given back: `workspace`. */
const FREE = "places.free";
/** A node waits for places of a workspace: `workspace`. */
const WANTED = "places.wanted";
/** How long it is remembered that another node waits. */
const WANTED_MS = 3_000;
const RETRY_MS = 1_000;

/** What other nodes have, and how many of them have waited longer than this one for more. */
interface Others {
  readonly taken: number;
  readonly waitingLonger: number;
}

const OTHERS = `SELECT COALESCE(SUM(taken), 0)::bigint AS taken,
    COUNT(*) FILTER (WHERE wanted > taken AND waiting_since < $3) AS "waitingLonger"
  FROM task_places WHERE workspace_id = $1 AND node_id <> $2`;
const OWN = `SELECT taken, wanted, waiting_since AS "waitingSince" FROM task_places WHERE workspace_id = $1 AND node_id = $2`;
/** Writes nothing once the node is given up. */
const KEEP = `INSERT INTO task_places (workspace_id, node_id, taken, wanted, waiting_since)
  SELECT $1, id, $3, $4, $5 FROM nodes WHERE id = $2
  ON CONFLICT (workspace_id, node_id) DO UPDATE SET
    taken = excluded.taken, wanted = excluded.wanted, waiting_since = excluded.waiting_since`;

export interface PlacesParts {
  readonly db: Db;
  readonly nodes: Pick<Nodes, "id" | "bus" | "lost">;
  readonly scheduler: Pick<Scheduler, "running" | "waiting" | "pump">;
  workspace(id: number): Workspace;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * The places of workspaces whose limit is enforced, shared by all nodes: a row says how many each node has. A node takes as
 * many as it can use, in a transaction of the workspace, and keeps them as long as it can use them and no other node has
 * waited longer.
 */
export class Places {
  readonly #parts: PlacesParts;
  readonly #granted = new Map<number, number>();
  readonly #asking = new Set<number>();
  /** Workspaces that have changed while this node was asking. */
  readonly #due = new Set<number>();
  /** Until when it is assumed that other nodes wait for places. */
  readonly #wantedUntil = new Map<number, number>();
  #isClosed = false;
  readonly #retries = new Map<number, () => void>();

  constructor(parts: PlacesParts) {
    const { nodes, clock } = parts;
    this.#parts = parts;
    nodes.lost.listen(() => this.#granted.clear());
    nodes.bus.listen(FREE, ({ workspace }) => {
      if (typeof workspace === "number" && parts.scheduler.waiting(workspace) > 0) this.#ask(workspace);
    });
    nodes.bus.listen(WANTED, ({ workspace }) => {
      if (typeof workspace !== "number") return;
      this.#wantedUntil.set(workspace, clock.monotonic() + WANTED_MS);
      if (this.granted(workspace) > 0) this.#ask(workspace);
    });
  }

  granted(workspaceId: number): number {
    return this.#granted.get(workspaceId) ?? 0;
  }

  changed(workspaceId: number): void {
    const isShort = this.#wanted(workspaceId) !== this.granted(workspaceId);
    const isWanted = (this.#wantedUntil.get(workspaceId) ?? 0) > this.#parts.clock.monotonic();
    if (isWanted) this.#keepUsed(workspaceId);
    if (isShort || isWanted) this.#ask(workspaceId);
  }

  #wanted(workspaceId: number): number {
    const { scheduler, workspace } = this.#parts;
    const { enforcement, concurrentTasks } = workspace(workspaceId).limits;
    const running = scheduler.running(workspaceId);
    if (enforcement === "soft") return 0;
    return Math.max(running, Math.min(concurrentTasks, running + scheduler.waiting(workspaceId)));
  }

  #ask(workspaceId: number): void {
    if (this.#isClosed) return;
    if (this.#asking.has(workspaceId)) {
      this.#due.add(workspaceId);
      return;
    }
    this.#asking.add(workspaceId);
    void this.#askAll(workspaceId);
  }

  /** Never rejects. */
  async #askAll(workspaceId: number): Promise<void> {
    const { scheduler, log } = this.#parts;
    do {
      this.#due.delete(workspaceId);
      // Joins what else this turn changes.
      await Promise.resolve();
      this.#keepUsed(workspaceId);
      try {
        await this.#settle(workspaceId);
      } catch (error) {
        this.#retrySoon(workspaceId);
        if (!(error instanceof StoreUnavailable)) {
          log.error("the places of a workspace cannot be counted", { workspace: workspaceId, error });
        }
      }
      scheduler.pump();
    } while (this.#due.has(workspaceId));
    this.#asking.delete(workspaceId);
  }

  /** Until it is known how many places this node has, nothing begins that would need one which is given back. */
  #keepUsed(workspaceId: number): void {
    const running = this.#parts.scheduler.running(workspaceId);
    if (running < this.granted(workspaceId)) this.#granted.set(workspaceId, running);
  }

  async #settle(workspaceId: number): Promise<void> {
    const { db, nodes, scheduler } = this.#parts;
    const { id } = nodes;
    const running = scheduler.running(workspaceId);
    const wanted = this.#wanted(workspaceId);
    const own = { workspaceId, id, running, wanted };
    const { taken, before } = await db.tx(workspaceId, (tx) => this.#take(tx, own));
    if (id !== nodes.id) return;
    this.#granted.set(workspaceId, taken);
    const message = { workspace: workspaceId };
    if (taken < before) nodes.bus.send(FREE, message);
    if (wanted <= taken) return;
    nodes.bus.send(WANTED, message);
    this.#retrySoon(workspaceId);
  }

  async #take(
    tx: Tx,
    own: {
      readonly workspaceId: number;
      readonly id: string;
      readonly running: number;
      readonly wanted: number;
    },
  ): Promise<{ readonly taken: number; readonly before: number }> {
    const { workspace, clock } = this.#parts;
    const { workspaceId, id, running, wanted } = own;
    const { concurrentTasks } = workspace(workspaceId).limits;
    const now = clock.now();
    const row = await tx.get<{ taken: number; wanted: number; waitingSince: number }>(OWN, [workspaceId, id]);
    const since = row && row.wanted > row.taken ? row.waitingSince : now;
    const others = await tx.get<Others>(OTHERS, [workspaceId, id, since]);
    const { taken: elsewhere, waitingLonger } = others ?? { taken: 0, waitingLonger: 0 };
    const free = Math.min(wanted, concurrentTasks - elsewhere);
    // Those that have waited longer get their share first.
    const share =
      waitingLonger > 0 ? Math.min(free, Math.floor(concurrentTasks / (waitingLonger + 1))) : free;
    const taken = Math.max(running, share);
    const before = row?.taken ?? 0;
    const kept = await tx.run(KEEP, [workspaceId, id, taken, wanted, taken > before ? now : since]);
    return { taken: kept === 1 ? taken : running, before };
  }

  #retrySoon(workspaceId: number): void {
    if (this.#isClosed || this.#retries.has(workspaceId)) return;
    const cancel = this.#parts.clock.after(RETRY_MS, () => {
      this.#retries.delete(workspaceId);
      if (this.#wanted(workspaceId) !== this.granted(workspaceId)) this.#ask(workspaceId);
    });
    this.#retries.set(workspaceId, cancel);
  }

  /** Asks for nothing more, because this node has stopped. */
  close(): void {
    this.#isClosed = true;
    for (const cancel of this.#retries.values()) cancel();
    this.#retries.clear();
  }
}
