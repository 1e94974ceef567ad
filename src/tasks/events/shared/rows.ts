import { inListSql, listsOf } from "../../../store/common-sql.ts";
import type { Db, Tx } from "../../../store/db.ts";
import { mayStoreEvents } from "../../erasure/response-events.ts";
import type { EventsOwner } from "../relay.ts";
import { type EventTable, TASK_EVENTS } from "../store.ts";

/** How far the events of a task or response are stored. */
export interface StoredState {
  readonly id: string;
  /** The id of the last stored event; 0 if there is none. */
  readonly upTo: number;
  /** Whether it has ended, so that nothing more will be stored. */
  readonly isOver: number | boolean;
}

/** The id of the last event of the row `o`. Blocks of events are in the order of their ids. */
const lastOf = ({ table, owner }: EventTable) =>
  `COALESCE((SELECT e.last_id FROM ${table} e WHERE e.workspace_id = o.workspace_id AND e.${owner} = o.id
     ORDER BY e.first_id DESC LIMIT 1), 0)`;

/**
 * Reads in one statement whether these have ended and how far their events are stored: the end and the last events are
 * written together. Those without a row are left out.
 */
export async function storedStates(
  db: Pick<Db, "all">,
  table: EventTable,
  workspaceId: number,
  ids: readonly string[],
): Promise<readonly StoredState[]> {
  const [owners, isOver] =
    table === TASK_EVENTS ? ["tasks", "o.finished_at IS NOT NULL"] : ["responses", "o.outcome_seq <> 0"];
  const found: StoredState[] = [];
  for (const list of listsOf(ids)) {
    const rows = await db.all<StoredState>(
      `SELECT o.id, ${isOver} AS "isOver", ${lastOf(table)} AS "upTo" FROM ${owners} o
       WHERE o.workspace_id = $1 AND ${inListSql("o.id", 2)}`,
      [workspaceId, ...list],
    );
    found.push(...rows);
  }
  return found;
}

/**
 * Whether events of a task or response may be stored before the end of their step. Locks nothing, so it never waits for the
 * transaction of the step, which stores the same events: a claim is lost only after eight seconds, and the database ends
 * a transaction that has been idle for three.
 */
export async function mayStoreEarly(
  tx: Tx,
  table: EventTable,
  { workspaceId, id }: EventsOwner,
  lastId: number,
): Promise<boolean> {
  const key = [workspaceId, id];
  if (table === TASK_EVENTS) {
    const sql = "SELECT 1 FROM tasks WHERE workspace_id = $1 AND id = $2 AND finished_at IS NULL";
    return (await tx.get(sql, key)) !== undefined;
  }
  const sql = "SELECT 1 FROM responses WHERE workspace_id = $1 AND id = $2 AND outcome_seq = 0";
  return (await tx.get(sql, key)) !== undefined && (await mayStoreEvents(tx, workspaceId, id, lastId));
}

/** A block that was stored early, and is extended as long as it is short. */
export interface EarlyBlock {
  readonly firstId: number;
  readonly lastId: number;
  readonly frames: Uint8Array;
}

/** @returns false if the block is no longer there as it was */
export async function extendBlock(
  tx: Tx,
  { table, owner }: EventTable,
  { workspaceId, id }: EventsOwner,
  block: EarlyBlock,
  { lastId, frames }: EarlyBlock,
): Promise<boolean> {
  const changed = await tx.run(
    `UPDATE ${table} SET last_id = $5, frames = $6
     WHERE workspace_id = $1 AND ${owner} = $2 AND first_id = $3 AND last_id = $4`,
    [workspaceId, id, block.firstId, block.lastId, lastId, frames],
  );
  return changed === 1;
}

/** The id of the last stored event of a task; 1, the derived event, if there is none. */
export async function lastTaskEvent(tx: Tx, { workspaceId, id }: EventsOwner): Promise<number> {
  const row = await tx.get<{ last: number }>(
    `SELECT last_id AS last FROM task_events WHERE workspace_id = $1 AND task_id = $2 ORDER BY first_id DESC LIMIT 1`,
    [workspaceId, id],
  );
  return row?.last ?? 1;
}

/** Lowers the ceiling of a task that rests to its last event, which is stored. */
export function setEventCeiling(tx: Tx, { workspaceId, id }: EventsOwner, ceiling: number): void {
  tx.write("UPDATE tasks SET event_ceiling = $3 WHERE workspace_id = $1 AND id = $2", [
    workspaceId,
    id,
    ceiling,
  ]);
}
