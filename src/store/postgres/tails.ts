import type { Session } from "./session.ts";

const LOCK =
  "SELECT workspace_id FROM ledger_tails WHERE workspace_id = ANY ($1::bigint[]) ORDER BY workspace_id FOR UPDATE";
const ADD =
  "INSERT INTO ledger_tails (workspace_id) SELECT unnest($1::bigint[]) ON CONFLICT (workspace_id) DO NOTHING";

/**
 * Locks the ends of ledgers until the transaction ends, in the order of their workspaces. Whoever holds the row of a
 * workspace is the only one who appends to its ledger, on any node. MUST come before all writes of the transaction:
 * another order would deadlock with transactions that lock the tail first.
 */
export async function lockTails(session: Session, workspaceIds: readonly number[]): Promise<void> {
  if (workspaceIds.length === 0) return;
  const ids = `{${workspaceIds.join(",")}}`;
  const { count } = await session.send(LOCK, [ids]);
  if (count === workspaceIds.length) return;
  await session.send(ADD, [ids]);
  await session.send(LOCK, [ids]);
}
