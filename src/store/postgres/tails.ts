import type { LedgerTail } from "../db.ts";
import type { Session } from "./session.ts";

const LOCK =
  "SELECT workspace_id, head, edge FROM ledger_tails WHERE workspace_id = ANY ($1::bigint[]) ORDER BY workspace_id FOR UPDATE";
const ADD =
  "INSERT INTO ledger_tails (workspace_id) SELECT unnest($1::bigint[]) ON CONFLICT (workspace_id) DO NOTHING";

/**
 * Locks the ends of ledgers until the transaction ends, in the order of their workspaces. Whoever holds the row of a
 * workspace is the only one who appends to its ledger, on any node. MUST come before all writes of the transaction:
 * another order would deadlock with transactions that lock the tail first.
 *
 * @param begun resolves once the transaction has begun
 * @returns the tails of those ledgers that have begun
 */
export async function lockTails(
  session: Session,
  workspaceIds: readonly number[],
  begun: Promise<void>,
): Promise<ReadonlyMap<number, LedgerTail>> {
  const tails = new Map<number, LedgerTail>();
  if (workspaceIds.length === 0) return tails;
  const ids = `{${workspaceIds.join(",")}}`;
  let { rows, count } = await session.send(LOCK, [ids]);
  if (count !== workspaceIds.length) {
    await begun;
    await session.send(ADD, [ids]);
    ({ rows, count } = await session.send(LOCK, [ids]));
  }
  for (const { workspace_id: workspaceId, head, edge } of rows) {
    if (typeof workspaceId === "number" && typeof head === "string" && edge instanceof Uint8Array)
      tails.set(workspaceId, { head, edge });
  }
  return tails;
}
