import type { Sql, Tx } from "../../store/db.ts";
import type { TaskClaims } from "../claims/claims.ts";
import { encodeFrame, type TaskEvents } from "../events/frames.ts";
import type { EventHub } from "../events/hub.ts";
import type { EventLog } from "../events/log.ts";
import { saveEvents } from "../events/store.ts";
import { raiseEventCeiling } from "../rows/tasks.ts";
import type { Approval } from "./rows.ts";

/** Event ids reserved above a decision's event, which is written while no run maintains the ceiling. */
const CEILING_STEP = 16;

export interface TellReadersParts {
  readonly hub: Pick<EventHub, "find" | "open" | "close">;
  readonly claims: Pick<TaskClaims, "isShared">;
}

/** Notifies the readers of a waiting task once the event is on disk. */
export async function tellReaders<Name extends "approval.decided" | "approval.required">(
  { hub, claims }: TellReadersParts,
  tx: Tx,
  { workspaceId, taskId }: Approval,
  name: Name,
  data: TaskEvents[Name],
): Promise<void> {
  const log = hub.find(taskId);
  if (claims.isShared) {
    const stored = await storedEvents(tx, workspaceId, taskId);
    if (!log || isBehind(log, stored))
      return tellThroughStore({ hub, tx, log, stored }, { workspaceId, taskId }, name, data);
  }
  if (!log) return;
  const from = log.savedUpTo;
  // Nothing else writes while the task waits, so the stored frame is the one that readers get.
  const id = log.nextId;
  const frame = encodeFrame(id, name, data);
  saveEvents(tx, workspaceId, taskId, from + 1, [...log.after(from), frame]);
  raiseEventCeiling(tx, workspaceId, taskId, id + CEILING_STEP);
  tx.onCommit(() => {
    // The process is stopping and its streams have ended: readers that resume get the event from the store.
    if (log.closed) return;
    log.publish(name, data);
    log.saved(id);
  });
}

/** What the store has of a task's events. */
interface StoredIds {
  /** The highest id of an event. */
  readonly last: number;
  /** No event with a higher id has ever been sent. */
  readonly ceiling: number;
}

async function storedEvents(sql: Pick<Sql, "get">, workspaceId: number, taskId: string): Promise<StoredIds> {
  const stored = await sql.get<StoredIds>(
    `SELECT COALESCE((SELECT MAX(e.last_id) FROM task_events e WHERE e.workspace_id = t.workspace_id AND e.task_id = t.id), 0) AS last,
       t.event_ceiling AS ceiling FROM tasks t WHERE t.workspace_id = $1 AND t.id = $2`,
    [workspaceId, taskId],
  );
  return stored ?? { last: 0, ceiling: 0 };
}

/** Whether other nodes have stored events of the task that this one does not know. */
function isBehind(log: EventLog, { last }: StoredIds): boolean {
  return last >= log.nextId;
}

/**
 * Makes the log of a waiting task continue after the events that other nodes have stored. Readers of the former log
 * resume, and get those from the store.
 */
export async function catchUpEvents(
  { hub }: Pick<TellReadersParts, "hub">,
  sql: Pick<Sql, "get">,
  workspaceId: number,
  taskId: string,
): Promise<void> {
  const log = hub.find(taskId);
  const stored = await storedEvents(sql, workspaceId, taskId);
  if (!log || !isBehind(log, stored)) return;
  log.close(null);
  hub.close(taskId);
  hub.open(taskId, Math.max(stored.last, stored.ceiling) + 1);
}

/** The node that has the task learns of the event from the store. */
function tellThroughStore<Name extends "approval.decided" | "approval.required">(
  {
    hub,
    tx,
    log,
    stored,
  }: {
    readonly hub: TellReadersParts["hub"];
    readonly tx: Tx;
    readonly log: EventLog | undefined;
    readonly stored: StoredIds;
  },
  { workspaceId, taskId }: Pick<Approval, "workspaceId" | "taskId">,
  name: Name,
  data: TaskEvents[Name],
): void {
  const id = Math.max(stored.last, stored.ceiling) + 1;
  saveEvents(tx, workspaceId, taskId, id, [encodeFrame(id, name, data)]);
  raiseEventCeiling(tx, workspaceId, taskId, id + CEILING_STEP);
  if (!log) return;
  tx.onCommit(() => {
    log.close(null);
    hub.close(taskId);
    hub.open(taskId, id + CEILING_STEP + 1);
  });
}
