import type { Sql } from "../../../store/db.ts";
import type { Snapshot } from "../snapshot.ts";

/** A checkpoint that the gateway signed by itself and keeps. */
export interface StoredCheckpoint {
  readonly size: number;
  /** RFC 3339. */
  readonly at: string;
}

const SHOWN = 8;

/** The last stored checkpoints that are about entries of the range or later, the newest first. */
export async function readCheckpoints(
  db: Pick<Sql, "all">,
  workspaceId: number,
  { first, size }: Snapshot,
): Promise<readonly StoredCheckpoint[]> {
  const rows = await db.all<{ size: number; created_at: number }>(
    `SELECT size, created_at FROM ledger_checkpoints WHERE workspace_id = $1 AND size >= $2 AND size <= $3
     ORDER BY size DESC LIMIT ${SHOWN}`,
    [workspaceId, first, size],
  );
  return rows.map((row) => ({ size: row.size, at: new Date(row.created_at).toISOString() }));
}
