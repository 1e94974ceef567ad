import type { Db, Tx } from "../../store/db.ts";
import { BLOCK_BYTES, blocksOf } from "./frames.ts";

/** A block of frames, as stored. Blocks are written at the end of each step rather than for every token. */
export interface EventBlock {
  readonly firstId: number;
  readonly lastId: number;
  /** Size of its frames in bytes. */
  readonly length: number;
  /** Null if the block is longer than usual, because it has a single long event. */
  readonly frames: Uint8Array | null;
}

/** Where events are stored: the table, and the column with the id of the task or response. */
export const TASK_EVENTS = { table: "task_events", owner: "task_id" } as const;
export const RESPONSE_EVENTS = { table: "response_events", owner: "response_id" } as const;
export type EventTable = typeof TASK_EVENTS | typeof RESPONSE_EVENTS;

/**
 * Stores frames. If a part of them has been stored with the same first id, by a transaction that began before the frames
 * after them were published, the longer block stays.
 */
export function saveEvents(
  tx: Tx,
  workspaceId: number,
  ownerId: string,
  firstId: number,
  frames: readonly Uint8Array[],
  { table, owner }: EventTable = TASK_EVENTS,
): void {
  let first = firstId;
  for (const block of blocksOf(frames)) {
    tx.write(
      `INSERT INTO ${table} (workspace_id, ${owner}, first_id, last_id, frames) VALUES ($1, $2, $3, $4, $5)
       ON CONFLICT (workspace_id, ${owner}, first_id) DO UPDATE SET last_id = excluded.last_id, frames = excluded.frames
       WHERE ${table}.last_id < excluded.last_id`,
      [workspaceId, ownerId, first, first + block.frames - 1, block.bytes],
    );
    first += block.frames;
  }
}

/**
 * In a shared store, events may be stored twice: early, for readers on other nodes, and at the end of their step. So a block may
 * begin within another one. As one early store is under way at a time, fewer blocks than this begin within one.
 */
const OVERLAPPING = 4;

/** SQL for the highest id of the stored events; NULL if there are none. `workspaceId` and `ownerId` are SQL. */
export function lastEventSql({ table, owner }: EventTable, workspaceId: string, ownerId: string): string {
  return `(SELECT MAX(l.last_id) FROM (SELECT last_id FROM ${table} WHERE workspace_id = ${workspaceId} AND ${owner} = ${ownerId}
    ORDER BY first_id DESC LIMIT ${OVERLAPPING}) AS l)`;
}

/**
 * Finds the next block that contains an event above `after`. It may begin with events that an earlier block contained as
 * well. Only a few blocks before it are visited.
 */
export async function findBlock(
  db: Db,
  workspaceId: number,
  ownerId: string,
  after: number,
  { table, owner }: EventTable = TASK_EVENTS,
): Promise<EventBlock | undefined> {
  return db.get<EventBlock>(
    `SELECT first_id AS "firstId", last_id AS "lastId", octet_length(frames) AS length,
       CASE WHEN octet_length(frames) <= $4 THEN frames END AS frames FROM ${table}
     WHERE workspace_id = $1 AND ${owner} = $2 AND last_id > $3 AND first_id >= (
       SELECT COALESCE(MIN(l.first_id), 0) FROM (SELECT first_id FROM ${table}
         WHERE workspace_id = $1 AND ${owner} = $2 AND first_id <= $3 + 1
         ORDER BY first_id DESC LIMIT ${OVERLAPPING}) AS l)
     ORDER BY first_id LIMIT 1`,
    [workspaceId, ownerId, after, BLOCK_BYTES],
  );
}

/** The frames of a block; undefined if they were erased. */
export async function readBlock(
  db: Db,
  workspaceId: number,
  ownerId: string,
  firstId: number,
  { table, owner }: EventTable = TASK_EVENTS,
): Promise<Uint8Array | undefined> {
  const row = await db.get<{ frames: Uint8Array }>(
    `SELECT frames FROM ${table} WHERE workspace_id = $1 AND ${owner} = $2 AND first_id = $3`,
    [workspaceId, ownerId, firstId],
  );
  return row?.frames;
}
