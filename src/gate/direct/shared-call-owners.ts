import { Problem } from "../../base/errors.ts";
import type { Appended, Ledger, Requested } from "../../ledger/ledger.ts";
import type { Nodes } from "../../nodes/nodes.ts";
import { type CommitWork, type Db, StoreUnavailable, type Tx } from "../../store/db.ts";
import type { LedgerHistories } from "../ledger-histories.ts";
import { isDirectCall, type LedgerHistory } from "../ledger-history.ts";
import type { CallOwners } from "./call-owners.ts";

/** Keeps the node from being given up before the transaction has ended. Reports of its liveness need not wait. */
const ALIVE = "SELECT 1 FROM nodes WHERE id = $1 FOR KEY SHARE";

/** Visits each owner once, by the index. */
const ORPHANED = `WITH RECURSIVE owners (id) AS (
    (SELECT node_id FROM open_calls ORDER BY node_id LIMIT 1)
    UNION ALL
    SELECT (SELECT c.node_id FROM open_calls c WHERE c.node_id > owners.id ORDER BY c.node_id LIMIT 1)
    FROM owners WHERE owners.id IS NOT NULL)
  SELECT 1 FROM owners WHERE id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = owners.id) LIMIT 1`;

/** The outcomes of one commit are written only if this node has not been given up. */
class NodeCheck implements CommitWork {
  nodeId = "";

  async write(tx: Tx): Promise<void> {
    if (await tx.get(ALIVE, [this.nodeId])) return;
    throw new StoreUnavailable("the other nodes have given this one up");
  }
}

export interface SharedCallOwnersParts {
  readonly db: Db;
  readonly nodes: Pick<Nodes, "id">;
  readonly ledger: Pick<Ledger, "requested" | "appending">;
  readonly histories: Pick<LedgerHistories, "of" | "catchUp">;
}

/**
 * A row for each call in flight, written with its intent and deleted with its outcome. Calls of a node that is gone may be
 * reported as lost by any other; from then on the former node can write no outcome for them.
 */
export class SharedCallOwners implements CallOwners {
  readonly #parts: SharedCallOwnersParts;
  /** The id that this node had when it recorded the intents of calls in flight. */
  readonly #own = new Map<string, string>();
  /** The call that a transaction reports as lost. It may be one of this node under a former id. */
  readonly #reporting = new WeakMap<Tx, string>();

  constructor(parts: SharedCallOwnersParts) {
    this.#parts = parts;
    parts.ledger.requested.listen((entry) => this.#requireOwn(entry));
    parts.ledger.appending.listen((entry) => this.#note(entry));
  }

  async lost(workspaceId: number): Promise<readonly number[]> {
    const { db, histories } = this.#parts;
    const open = [...(await this.#caughtUp(workspaceId)).openCalls];
    if (open.length === 0) return [];
    const rows = await db.all<{ seq: number; isAlive: number | boolean }>(
      `SELECT seq, EXISTS (SELECT 1 FROM nodes n WHERE n.id = c.node_id) AS "isAlive"
       FROM open_calls c WHERE workspace_id = $1`,
      [workspaceId],
    );
    const owned = new Map(rows.map(({ seq, isAlive }) => [seq, Boolean(isAlive)]));
    const missing = open.filter((seq) => !owned.has(seq));
    // A call without a row has ended, which the ledger then shows, or its row was removed.
    if (missing.length > 0) await histories.catchUp(workspaceId);
    const { openCalls } = histories.of(workspaceId);
    const removed = missing.filter((seq) => openCalls.has(seq));
    for (const seq of removed) {
      await db.run(
        "INSERT INTO open_calls (workspace_id, seq, node_id) VALUES ($1, $2, '') ON CONFLICT DO NOTHING",
        [workspaceId, seq],
      );
    }
    return open.filter((seq) => removed.includes(seq) || owned.get(seq) === false);
  }

  async takeLost(tx: Tx, workspaceId: number, seq: number): Promise<boolean> {
    const taken = await tx.run(
      `DELETE FROM open_calls WHERE workspace_id = $1 AND seq = $2
         AND NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = open_calls.node_id)`,
      [workspaceId, seq],
    );
    if (taken !== 1) return false;
    // In no other transaction, so the call's own outcome is refused, as if others had reported it.
    this.#reporting.set(tx, keyOf(workspaceId, seq));
    return true;
  }

  async mayHaveLost(): Promise<boolean> {
    return (await this.#parts.db.get(ORPHANED)) !== undefined;
  }

  async #caughtUp(workspaceId: number): Promise<LedgerHistory> {
    const { histories } = this.#parts;
    await histories.catchUp(workspaceId);
    return histories.of(workspaceId);
  }

  /** @throws Problem 503 `ledger_unavailable` if others report the call as lost */
  #requireOwn({ tx, workspaceId, draft }: Requested): void {
    if (draft.phase !== "outcome" || draft.ref === undefined || !isDirectCall(draft)) return;
    const owner = this.#own.get(keyOf(workspaceId, draft.ref));
    if (owner === undefined || owner === this.#parts.nodes.id) return;
    if (this.#reporting.get(tx) === keyOf(workspaceId, draft.ref)) return;
    throw new Problem(
      "ledger_unavailable",
      "This server was cut off from the store while the call was made, so other servers have recorded it as lost.",
    );
  }

  #note({ tx, workspaceId, seq, draft }: Appended & { readonly tx: Tx }): void {
    if (!isDirectCall(draft)) return;
    const { phase, ref } = draft;
    const { id } = this.#parts.nodes;
    if (phase === "intent") {
      tx.write("INSERT INTO open_calls (workspace_id, seq, node_id) VALUES ($1, $2, $3)", [
        workspaceId,
        seq,
        id,
      ]);
      // A node that was given up begins no call.
      tx.shared(NodeCheck).nodeId = id;
      tx.onCommit(() => this.#own.set(keyOf(workspaceId, seq), id));
    } else if (phase === "outcome" && ref !== undefined && this.#own.has(keyOf(workspaceId, ref))) {
      tx.write("DELETE FROM open_calls WHERE workspace_id = $1 AND seq = $2", [workspaceId, ref]);
      tx.shared(NodeCheck).nodeId = id;
      tx.onCommit(() => this.#own.delete(keyOf(workspaceId, ref)));
    }
  }
}

function keyOf(workspaceId: number, seq: number): string {
  return `${workspaceId} ${seq}`;
}
