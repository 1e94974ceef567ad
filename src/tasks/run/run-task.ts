import { LedgerChanged } from "../../ledger/ledger-changed.ts";
import { StoreUnavailable } from "../../store/db.ts";
import type { TaskEnding } from "../ending/finish.ts";
import {
  contradicted,
  DrainInterrupt,
  internal,
  type RunSignals,
  unrecorded,
} from "../ending/interruption.ts";
import { endTask, loadQueuedTask } from "../ending/store-retries.ts";
import type { EventLog } from "../events/log.ts";
import type { TaskParts } from "../parts.ts";
import type { QueuedTask } from "../queue/scheduler.ts";
import { markQueued } from "../rows/tasks.ts";
import type { Task } from "../task.ts";
import { type EarlyRun, NotDispatched } from "./first-write.ts";
import { type PauseReason, TaskRun } from "./task-run.ts";

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
): Promise<"ended" | "awaiting" | "givenBack"> {
  const parts = early ? { ...all, db: early.first.db } : all;
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
  const run = new TaskRun(parts, task, log, signals, early?.first ?? null);
  let ending: TaskEnding | PauseReason;
  try {
    ending = await run.run();
  } catch (error) {
    if (error instanceof NotDispatched) return "ended";
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
    await breakOff(parts, task, log);
    return "givenBack";
  }
  await endTask(parts, task, log, ending, signals, run.outcome);
  return "ended";
}

function endingAfter(error: unknown): TaskEnding {
  if (error instanceof StoreUnavailable) return unrecorded();
  return error instanceof LedgerChanged ? contradicted() : internal();
}

/**
 * Returns a task to the queue for the next start. Its readers' streams end without `task.finished`, and the readers
 * resume.
 */
async function breakOff(parts: TaskParts, task: Task, log: EventLog): Promise<void> {
  try {
    await parts.db.tx(null, async (tx) => markQueued(tx, task.workspaceId, task.id, true), {
      single: true,
      turnOf: task.workspaceId,
    });
    parts.signals.changed.emit({ workspaceId: task.workspaceId, task: task.id });
  } catch (error) {
    // The next start finds it running, and recovers it as after a crash.
    parts.log.warn("a task cannot be returned to the queue", { task: task.id, error });
  }
  log.close(null);
}
