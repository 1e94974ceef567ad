import { LedgerChanged } from "../../ledger/ledger-changed.ts";
import { StoreUnavailable, type Tx } from "../../store/db.ts";
import { ClaimLost } from "../claims/claims.ts";
import type { TaskEnding } from "../ending/finish.ts";
import {
  contradicted,
  DrainInterrupt,
  internal,
  interruptionOf,
  type RunSignals,
  unrecorded,
} from "../ending/interruption.ts";
import { endTask, loadQueuedTask } from "../ending/store-retries.ts";
import type { EventLog } from "../events/log.ts";
import { saveEvents } from "../events/store.ts";
import { partsOf, type TaskParts } from "../parts.ts";
import type { QueuedTask } from "../queue/scheduler.ts";
import { markQueued } from "../rows/tasks.ts";
import type { Task } from "../task.ts";
import { type EarlyRun, NotDispatched } from "./first-write.ts";
import { type PauseReason, TaskRun } from "./task-run.ts";

/**
 * How a run ended. `givenBack`: its task is queued for the next start. `left`: another node continues it, or may do so.
 */
export type RunResult = "ended" | "awaiting" | "givenBack" | "left";

/**
 * Runs one task until it ends or a person must decide, and always records the true result. Never rejects. `tookUp` is
 * called with the task once it is read.
 * @param early set if the run begins before its task is stored
 */
export async function runTask(
  all: TaskParts,
  queued: QueuedTask,
  early: EarlyRun | null,
  signals: RunSignals,
  tookUp: (task: Task) => void,
): Promise<RunResult> {
  const parts = partsOf(early ? { ...all, db: early.first.db } : all, queued);
  const log = parts.hub.find(queued.taskId);
  if (!log) return "ended";
  const task = early?.task ?? (await loadQueuedTask(parts, queued, signals));
  if (!task) {
    log.close(null);
    parts.hub.close(queued.taskId);
    return "ended";
  }
  // Another node may have stored a decision's event while the task rested here. Its row tells, even if the message is lost.
  if (parts.hub.relay) log.skipTo(task.eventCeiling + 1);
  tookUp(task);
  const { signal } = signals;
  const run = new TaskRun(parts, task, log, signals, early?.first ?? null);
  let ending: TaskEnding | PauseReason;
  try {
    ending = await run.run();
  } catch (error) {
    if (error instanceof NotDispatched) return "ended";
    if (error instanceof ClaimLost) return leave(parts, task, log);
    if (error instanceof DrainInterrupt) {
      ending = "shutdown";
    } else {
      parts.log.error("a task failed with an internal error", { task: task.id, error });
      ending = endingAfter(error);
    }
  }
  if (early && !(await early.first.isStored)) return "ended";
  if (ending === "awaiting") return "awaiting";
  if (ending === "shutdown") {
    const interruption = interruptionOf(signal);
    if (interruption?.reason === "lost") return leave(parts, task, log);
    await breakOff(parts, task, log, interruption?.to ?? null);
    return parts.claims.isShared ? leave(parts, task, log) : "givenBack";
  }
  await endTask(parts, task, log, ending, signals, run.outcome);
  return "ended";
}

function endingAfter(error: unknown): TaskEnding {
  if (error instanceof StoreUnavailable) return unrecorded();
  return error instanceof LedgerChanged ? contradicted() : internal();
}

/** Ends the streams of a task that another node has: its readers resume there. */
function leave({ hub }: Pick<TaskParts, "hub">, { id }: Task, log: EventLog): "left" {
  if (!log.closed) log.close(null);
  hub.close(id);
  return "left";
}

/**
 * Returns a task to the queue, for another node or for the next start. Its readers' streams end without
 * `task.finished`, and the readers resume.
 * @param to the node that gets it; null for whichever node is first
 */
async function breakOff(parts: TaskParts, task: Task, log: EventLog, to: string | null): Promise<void> {
  const { db, claims, signals } = parts;
  const { workspaceId, id } = task;
  try {
    await db.tx(
      null,
      async (tx) => {
        markQueued(tx, workspaceId, id, true);
        if (!claims.isShared) return;
        saveUnsaved(tx, task, log);
        claims.release(tx, [{ workspaceId, id }], to);
      },
      { single: !claims.isShared, turnOf: workspaceId },
    );
    signals.changed.emit({ workspaceId, task: id });
  } catch (error) {
    // The next start finds it running, and recovers it as after a crash.
    if (!(error instanceof ClaimLost)) {
      parts.log.warn("a task cannot be returned to the queue", { task: id, error });
    }
  }
  log.close(null);
}

/** Stores the events that readers have seen, for those that resume at the task's next node. */
function saveUnsaved(tx: Tx, { workspaceId, id }: Task, log: EventLog): void {
  log.flush();
  const from = log.savedUpTo;
  const frames = log.after(from);
  if (frames.length > 0) saveEvents(tx, workspaceId, id, from + 1, frames);
}
