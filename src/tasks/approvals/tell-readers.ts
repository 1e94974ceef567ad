import type { Tx } from "../../store/db.ts";
import { encodeFrame, type TaskEvents } from "../events/frames.ts";
import type { EventHub } from "../events/hub.ts";
import type { EventLog } from "../events/log.ts";
import type { EventRelay } from "../events/relay.ts";
import { saveEvents } from "../events/store.ts";
import { raiseEventCeiling } from "../rows/tasks.ts";
import type { Approval } from "./rows.ts";

/** Event ids reserved above a decision's event, which is written while no run maintains the ceiling. */
const CEILING_STEP = 16;

/** Notifies the readers of a waiting task once the event is on disk. */
export async function tellReaders<Name extends "approval.decided" | "approval.required">(
  hub: Pick<EventHub, "find" | "relay">,
  tx: Tx,
  approval: Approval,
  name: Name,
  data: TaskEvents[Name],
): Promise<void> {
  const { workspaceId, taskId } = approval;
  const log = hub.find(taskId);
  if (hub.relay) await tellOnAllNodes(hub.relay, log, tx, approval, name, data);
  if (hub.relay || !log) return;
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

/** Stores the event after the last one in the store: the task rests on any node, and so did those before it. */
async function tellOnAllNodes<Name extends "approval.decided" | "approval.required">(
  relay: EventRelay,
  log: EventLog | undefined,
  tx: Tx,
  { workspaceId, taskId }: Approval,
  name: Name,
  data: TaskEvents[Name],
): Promise<void> {
  const owner = { workspaceId, id: taskId };
  const id = await relay.nextId(tx, owner);
  saveEvents(tx, workspaceId, taskId, id, [encodeFrame(id, name, data)]);
  relay.rest(tx, owner, id);
  tx.onCommit(() => {
    relay.stored(owner, id);
    log?.skipTo(id + 1);
  });
}
