import type { Nodes } from "../../../nodes/nodes.ts";
import type { Db, Tx } from "../../../store/db.ts";
import { type Claim, ClaimLost, type TaskClaims, type WorkKey } from "../claims.ts";

/** A task was queued again, and its node has to resume it: `workspace`, `task`, `node`. */
export const DUE = "tasks.due";
/** Claims were released: the node `to` has them now, or nobody if it is null. */
export const RELEASED = "tasks.released";

/** The node that has a claim. */
export interface ClaimOwner {
  readonly nodeId: string;
  /** Whether that node still exists. If not, any node may take the claim. */
  readonly isAlive: number | boolean;
}

/** In place of a node's id: the claim was given up, and any node may take it. */
const NOBODY = "";

/** Locks the claim until the transaction has ended, so that no other node can take it in between. */
const HELD = `SELECT 1 FROM task_claims WHERE workspace_id = $1 AND task_id = $2 AND node_id = $3 FOR SHARE`;

/** Visits each owner once, by the index. */
const ORPHANED_OWNERS = `WITH RECURSIVE owners (id) AS (
    (SELECT node_id FROM task_claims ORDER BY node_id LIMIT 1)
    UNION ALL
    SELECT (SELECT c.node_id FROM task_claims c WHERE c.node_id > owners.id ORDER BY c.node_id LIMIT 1)
    FROM owners WHERE owners.id IS NOT NULL)
  SELECT id FROM owners WHERE id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = owners.id)`;

const ADOPT = `UPDATE task_claims SET node_id = $1 WHERE (workspace_id, task_id) IN (
    SELECT workspace_id, task_id FROM task_claims WHERE node_id = $2
    ORDER BY workspace_id, task_id LIMIT $3 FOR UPDATE SKIP LOCKED)
  RETURNING workspace_id AS "workspaceId", task_id AS id`;

/** Agents' ids begin at 1; 0 means all. */
const ADOPT_STOPPED = `UPDATE task_claims SET node_id = $1 WHERE (workspace_id, task_id) IN (
    SELECT c.workspace_id, c.task_id FROM task_claims c
    LEFT JOIN tasks t ON t.workspace_id = c.workspace_id AND t.id = c.task_id
    LEFT JOIN responses r ON r.workspace_id = c.workspace_id AND r.id = c.task_id
    WHERE c.workspace_id = $2 AND (COALESCE(t.agent_id, r.agent_id) = $3 OR $3 = 0)
      AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = c.node_id)
    FOR UPDATE OF c SKIP LOCKED)
  RETURNING workspace_id AS "workspaceId", task_id AS id`;

/** Tasks that have never begun and that no client of their node waits for. Their owner has none of them running. */
const TAKE_WAITING = `UPDATE task_claims SET node_id = $1 WHERE (workspace_id, task_id) IN (
    SELECT c.workspace_id, c.task_id FROM task_claims c
    JOIN tasks t ON t.workspace_id = c.workspace_id AND t.id = c.task_id
    WHERE c.node_id = $2 AND c.workspace_id = $3 AND t.status = 'queued' AND t.started_at IS NULL AND t.created_at < $4
      AND NOT EXISTS (SELECT 1 FROM task_answers a WHERE a.workspace_id = c.workspace_id AND a.task_id = c.task_id)
    ORDER BY c.task_id LIMIT $5 FOR UPDATE OF c SKIP LOCKED)
  RETURNING workspace_id AS "workspaceId", task_id AS id`;

/** How many claims one statement restores. */
const RESTORE_AT_ONCE = 1_000;
const RESTORE = `INSERT INTO task_claims (workspace_id, task_id, node_id)
  SELECT $1, open.id, '' FROM unnest($2::text[]) AS open (id) ON CONFLICT DO NOTHING`;

/** Claims as rows that name their node. A claim whose node has no row any more is free. */
export class SharedClaims implements TaskClaims {
  readonly isShared = true;
  readonly #db: Db;
  readonly #nodes: Pick<Nodes, "id" | "bus">;

  constructor(db: Db, nodes: Pick<Nodes, "id" | "bus">) {
    this.#db = db;
    this.#nodes = nodes;
  }

  claim(workspaceId: number, id: string): Claim {
    const nodeId = this.#nodes.id;
    return { isHeld: async (tx) => (await tx.get(HELD, [workspaceId, id, nodeId])) !== undefined };
  }

  fence(db: Db, workspaceId: number, id: string): Db {
    const claim = this.claim(workspaceId, id);
    // Inherits, so that the getters keep telling the current state.
    return Object.assign(Object.create(db) as Db, {
      tx: ((ledgers, work, options) =>
        db.tx(ledgers, (tx) => fenced(tx, claim, id, work), options)) satisfies Db["tx"],
    });
  }

  add(tx: Tx, workspaceId: number, id: string): void {
    tx.write("INSERT INTO task_claims (workspace_id, task_id, node_id) VALUES ($1, $2, $3)", [
      workspaceId,
      id,
      this.#nodes.id,
    ]);
  }

  end(tx: Tx, workspaceId: number, id: string): void {
    tx.write("DELETE FROM task_claims WHERE workspace_id = $1 AND task_id = $2", [workspaceId, id]);
  }

  release(tx: Tx, keys: readonly WorkKey[], to: string | null): void {
    for (const { workspaceId, id } of keys) {
      tx.write(
        "UPDATE task_claims SET node_id = $4 WHERE workspace_id = $1 AND task_id = $2 AND node_id = $3",
        [...[workspaceId, id, this.#nodes.id, to ?? NOBODY]],
      );
    }
    tx.onCommit(() => this.#nodes.bus.send(RELEASED, { to }, { isUrgent: true }));
  }

  async resume(tx: Tx, workspaceId: number, id: string): Promise<boolean> {
    // Locks the claim even if it is this node's: a release that is under way must not fall between this and the commit.
    const own = this.#nodes.id;
    const claim = await tx.get<{ nodeId: string }>(
      `UPDATE task_claims SET is_due = (node_id <> $3) WHERE workspace_id = $1 AND task_id = $2
       RETURNING node_id AS "nodeId"`,
      [workspaceId, id, own],
    );
    if (!claim || claim.nodeId === own) return true;
    const due = { workspace: workspaceId, task: id, node: claim.nodeId };
    tx.onCommit(() => this.#nodes.bus.send(DUE, due, { isUrgent: true }));
    return false;
  }

  /** Undefined if there is no claim, because the task has ended. */
  owner({ workspaceId, id }: WorkKey): Promise<ClaimOwner | undefined> {
    return this.#db.urgent.get<ClaimOwner>(
      `SELECT node_id AS "nodeId", EXISTS (SELECT 1 FROM nodes n WHERE n.id = c.node_id) AS "isAlive"
       FROM task_claims c WHERE workspace_id = $1 AND task_id = $2`,
      [workspaceId, id],
    );
  }

  /**
   * Takes a claim from another node, or from none. That node can write nothing more for the task.
   * @returns false if that node no longer has it
   */
  async take({ workspaceId, id }: WorkKey, { nodeId }: ClaimOwner): Promise<boolean> {
    const sql =
      "UPDATE task_claims SET node_id = $3 WHERE workspace_id = $1 AND task_id = $2 AND node_id = $4";
    const params = [workspaceId, id, this.#nodes.id, nodeId];
    return (await this.#db.tx(null, (tx) => tx.run(sql, params), { turnOf: workspaceId })) === 1;
  }

  /** Takes at most `limit` claims that no living node has. */
  async adopt(limit: number): Promise<readonly WorkKey[]> {
    const owners = await this.#db.all<{ id: string }>(ORPHANED_OWNERS);
    const adopted: WorkKey[] = [];
    for (const { id } of owners) {
      if (adopted.length >= limit) break;
      const left = limit - adopted.length;
      adopted.push(...(await this.#take(ADOPT, [this.#nodes.id, id, left])));
    }
    return adopted;
  }

  /** Takes tasks of one workspace that have waited at another node since before `before`. */
  takeWaiting(
    nodeId: string,
    workspaceId: number,
    before: number,
    limit: number,
  ): Promise<readonly WorkKey[]> {
    return this.#take(TAKE_WAITING, [this.#nodes.id, nodeId, workspaceId, before, limit]);
  }

  /** Takes the tasks and responses of a workspace, or of one of its agents, that no living node has. */
  adoptStopped(workspaceId: number, agentId: number | null): Promise<readonly WorkKey[]> {
    return this.#take(ADOPT_STOPPED, [this.#nodes.id, workspaceId, agentId ?? 0]);
  }

  #take(sql: string, params: readonly (string | number)[]): Promise<readonly WorkKey[]> {
    return this.#db.tx(null, (tx) => tx.all<WorkKey>(sql, params));
  }

  /**
   * Gives open work that has no claim one that any node may take: it was copied from another store, or somebody has removed
   * its claim.
   */
  async restore(workspaceId: number, ids: readonly string[]): Promise<void> {
    for (let from = 0; from < ids.length; from += RESTORE_AT_ONCE) {
      const list = ids.slice(from, from + RESTORE_AT_ONCE);
      await this.#db.run(RESTORE, [workspaceId, `{${list.join(",")}}`]);
    }
  }

  /** Everything that this node has claimed. */
  own(): Promise<readonly WorkKey[]> {
    return this.#db.all<WorkKey>(
      `SELECT workspace_id AS "workspaceId", task_id AS id FROM task_claims WHERE node_id = $1`,
      [this.#nodes.id],
    );
  }

  /** How many claims this node has. */
  async count(): Promise<number> {
    const row = await this.#db.get<{ count: number }>(
      "SELECT COUNT(*) AS count FROM task_claims WHERE node_id = $1",
      [this.#nodes.id],
    );
    return row?.count ?? 0;
  }

  /** The tasks of this node that others have queued again since it last asked. */
  async takeDue(): Promise<readonly WorkKey[]> {
    const own = [this.#nodes.id];
    if (!(await this.#db.get("SELECT 1 FROM task_claims WHERE node_id = $1 AND is_due LIMIT 1", own)))
      return [];
    return this.#db.tx(null, (tx) =>
      tx.all<WorkKey>(
        `UPDATE task_claims SET is_due = FALSE WHERE node_id = $1 AND is_due
         RETURNING workspace_id AS "workspaceId", task_id AS id`,
        own,
      ),
    );
  }
}

/** Checks a claim while the work proceeds, so the work does not wait for it. */
async function fenced<Result>(
  tx: Tx,
  claim: Claim,
  id: string,
  work: (tx: Tx) => Promise<Result>,
): Promise<Result> {
  const [held, done] = await Promise.allSettled([claim.isHeld(tx), work(tx)]);
  if (held.status === "rejected") throw held.reason;
  if (!held.value) throw new ClaimLost(id);
  if (done.status === "rejected") throw done.reason;
  return done.value;
}
