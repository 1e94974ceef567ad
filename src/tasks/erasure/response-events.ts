import type { Tx } from "../../store/db.ts";
import type { EventBlock } from "../events/store.ts";

/**
 * The first id of the block that takes the place of erased events. It has no events. Its `last_id` is the highest id that
 * any had, since ids are never used twice.
 */
const ERASED = 0;

export function isErased({ firstId }: Pick<EventBlock, "firstId">): boolean {
  return firstId === ERASED;
}

/** Deletes the stored events of responses that have ended. @returns how many blocks there were */
export async function deleteEventsOf(tx: Tx, workspaceId: number, ids: readonly string[]): Promise<number> {
  const sql = "DELETE FROM response_events WHERE workspace_id = $1 AND response_id = $2";
  let blocks = 0;
  for (const id of ids) blocks += await tx.run(sql, [workspaceId, id]);
  return blocks;
}

/**
 * Erases the stored events of a response. If it is still being made, none are stored from then on: its next events, and
 * those of further attempts, may repeat what was erased.
 */
export async function eraseEventsOf(tx: Tx, workspaceId: number, id: string): Promise<void> {
  const key = [workspaceId, id];
  const row = await tx.get<{ is_open: number; last: number | null }>(
    `SELECT outcome_seq = 0 AS is_open,
       (SELECT MAX(last_id) FROM response_events WHERE workspace_id = $1 AND response_id = $2) AS last
     FROM responses WHERE workspace_id = $1 AND id = $2`,
    key,
  );
  await deleteEventsOf(tx, workspaceId, [id]);
  if (!row || (row.is_open === 0 && row.last === null)) return;
  tx.write(
    `INSERT INTO response_events (workspace_id, response_id, first_id, last_id, frames)
     VALUES ($1, $2, $3, $4, $5)`,
    [...key, ERASED, row.last ?? 1, new Uint8Array()],
  );
}

/**
 * Whether events of a response may be stored. Those of a response that was deleted would never be erased.
 * @param lastId the highest id of the new events
 */
export async function mayStoreEvents(
  tx: Tx,
  workspaceId: number,
  id: string,
  lastId: number,
): Promise<boolean> {
  const erased = await tx.run(
    `UPDATE response_events SET last_id = CASE WHEN last_id < $4 THEN $4 ELSE last_id END
     WHERE workspace_id = $1 AND response_id = $2 AND first_id = $3`,
    [workspaceId, id, ERASED, lastId],
  );
  if (erased > 0) return false;
  const row = await tx.get("SELECT 1 AS found FROM responses WHERE workspace_id = $1 AND id = $2", [
    workspaceId,
    id,
  ]);
  return row !== undefined;
}
