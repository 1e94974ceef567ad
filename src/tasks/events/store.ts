import type { Db, Tx } from "../../store/db.ts";
import { blocksOf } from "./frames.ts";

/** A block of frames, as stored. Blocks are written at the end of each step rather than for every token. */
export interface EventBlock {
  readonly firstId: number;
  readonly lastId: number;
  readonly frames: Uint8Array;
}

export async function saveEvents(
  tx: Tx,
  workspaceId: number,
  taskId: string,
  firstId: number,
  frames: readonly Uint8Array[],
): Promise<void> {
  let first = firstId;
  for (const block of blocksOf(frames)) {
    await tx.run(
      "INSERT INTO task_events (workspace_id, task_id, first_id, last_id, frames) VALUES ($1, $2, $3, $4, $5)",
      [workspaceId, taskId, first, first + block.frames - 1, block.bytes],
    );
    first += block.frames;
  }
}

/** The next block that contains an event above `after`. */
export async function nextEvents(
  db: Db,
  workspaceId: number,
  taskId: string,
  after: number,
): Promise<EventBlock | undefined> {
  return db.get<EventBlock>(
    `SELECT first_id AS "firstId", last_id AS "lastId", frames FROM task_events
     WHERE workspace_id = $1 AND task_id = $2 AND last_id > $3 ORDER BY first_id LIMIT 1`,
    [workspaceId, taskId, after],
  );
}
