import { inListSql, listsOf } from "../../../store/common-sql.ts";
import type { Db, Tx } from "../../../store/db.ts";
import { mayStoreEvents } from "../../erasure/response-events.ts";
import type { EventsOwner } from "../relay.ts";
import { type EventTable, lastEventSql, TASK_EVENTS } from "../store.ts";

/** How far the events of a task or response are stored. */
export interface StoredState {
  readonly id: string;
  /** The id of the last stored event; 0 if there is none. */
  readonly upTo: number;
  /** Whether it has ended, so that nothing more will be stored. */
  readonly isOver: number | boolean;
}

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
      `SELECT o.id, ${isOver} AS "isOver", COALESCE(${lastEventSql(table, "o.workspace_id", "o.id")}, 0) AS "upTo" FROM ${owners} o
       WHERE o.workspace_id = $1 AND ${inListSql("o.id", 2)}`,
      [workspaceId, ...list],
    );
    found.push(...rows);
  }
  return found;
}

/** Only an open task has a claim. */
const CLAIMED_TASK = "SELECT 1 FROM task_claims WHERE workspace_id = $1 AND task_id = $2 AND node_id = $3";
const OPEN_RESPONSE = `SELECT 1 FROM responses WHERE workspace_id = $1 AND id = $2 AND outcome_seq = 0
  AND NOT EXISTS (SELECT 1 FROM task_claims c WHERE c.workspace_id = $1 AND c.task_id = $2 AND c.node_id <> $3)`;

/**
 * Whether events of a task or response may be stored before the end of their step: this node has its claim. Locks
 * nothing, so it never waits in a circle for the transaction of the step, which stores the same events and may end the claim.
 * If the claim is lost in between, the events still have lower ids than those of the next node, which begins with a reset.
 */
export async function mayStoreEarly(
  tx: Tx,
  table: EventTable,
  { workspaceId, id }: EventsOwner,
  { nodeId, lastId }: { readonly nodeId: string; readonly lastId: number },
): Promise<boolean> {
  const isTask = table === TASK_EVENTS;
  const held = await tx.get(isTask ? CLAIMED_TASK : OPEN_RESPONSE, [workspaceId, id, nodeId]);
  return held !== undefined && (isTask || (await mayStoreEvents(tx, workspaceId, id, lastId)));
}

/** A block that was stored early, and is extended as long as it is short. */
export interface EarlyBlock {
  readonly firstId: number;
  readonly lastId: number;
  readonly frames: Uint8Array;
}

/**
 * Extends the last block. The transaction at the end of a step may have stored some of the same events in a block that begins
 * later, and readers would look for the events after it in no earlier block.
 * @returns false if the block is no longer there as it was, or is not the last one
 */
export async function extendBlock(
  tx: Tx,
  { table, owner }: EventTable,
  { workspaceId, id }: EventsOwner,
  block: EarlyBlock,
  { lastId, frames }: EarlyBlock,
): Promise<boolean> {
  const changed = await tx.run(
    `UPDATE ${table} SET last_id = $5, frames = $6
     WHERE workspace_id = $1 AND ${owner} = $2 AND first_id = $3 AND last_id = $4
       AND NOT EXISTS (SELECT 1 FROM ${table} l WHERE l.workspace_id = $1 AND l.${owner} = $2 AND l.first_id > $3)`,
    [workspaceId, id, block.firstId, block.lastId, lastId, frames],
  );
  return changed === 1;
}

/** The id of the last stored event; 1, the derived event, if there is none. */
export async function lastEvent(
  tx: Tx,
  table: EventTable,
  { workspaceId, id }: EventsOwner,
): Promise<number> {
  const sql = `SELECT ${lastEventSql(table, "$1", "$2")} AS last`;
  return (await tx.get<{ last: number | null }>(sql, [workspaceId, id]))?.last ?? 1;
}

/** Lowers the ceiling of a task that rests to its last event, which is stored. */
export function setEventCeiling(tx: Tx, { workspaceId, id }: EventsOwner, ceiling: number): void {
  tx.write("UPDATE tasks SET event_ceiling = $3 WHERE workspace_id = $1 AND id = $2", [
    workspaceId,
    id,
    ceiling,
  ]);
}
