import type { Clock } from "../../base/clock.ts";
import { StoreUnavailable } from "../../store/db.ts";
import { ClaimLost } from "../claims/claims.ts";
import type { EventLog } from "../events/log.ts";
import type { TaskParts } from "../parts.ts";
import type { QueuedTask } from "../queue/scheduler.ts";
import { findSealedTask } from "../rows/tasks.ts";
import type { Task } from "../task.ts";
import { finishTask, type TaskEnding, type UnwrittenOutcome } from "./finish.ts";
import { type EndingSignals, internal, interruptionOf, unrecorded } from "./interruption.ts";

const RETRY_FIRST_MS = 250;
const RETRY_LAST_MS = 1_000;

/**
 * Reads a task, retrying until it succeeds: an accepted task must not be forgotten. Undefined if the task's row is
 * missing or was changed, or if the process stops before the task can be read.
 */
export async function loadQueuedTask(
  parts: Pick<TaskParts, "db" | "clock" | "log">,
  queued: QueuedTask,
  signals: EndingSignals,
): Promise<Task | undefined> {
  const { signal, stopping, retries } = signals;
  for (let wait = RETRY_FIRST_MS; ; wait = Math.min(wait * 2, RETRY_LAST_MS)) {
    try {
      const task = await findSealedTask(parts.db, queued.workspaceId, queued.taskId);
      if (!task)
        parts.log.error("a queued task is missing from the store or was changed there", {
          task: queued.taskId,
        });
      return task;
    } catch (error) {
      const interruption = interruptionOf(signal);
      interruption?.defer();
      retries.refused.emit();
      if (stopping.aborted) {
        parts.log.error("a task cannot be read and is left to the next start", {
          task: queued.taskId,
          ...interruption?.decision?.facts(),
          error,
        });
        return undefined;
      }
      if (wait === RETRY_FIRST_MS) {
        parts.log.warn("a task cannot be read yet", { task: queued.taskId, error });
      }
      await pause(parts.clock, wait, signals);
    }
  }
}

/**
 * Ends a task durably. Retries until the store accepts the end or the process is told to stop; then a later start
 * ends the task. If the store refuses the end because of its contents, it is written once more as a bare failure.
 * @returns false if it could not be written, also because another node has taken the task over
 */
export async function endTask(
  parts: TaskParts,
  task: Task,
  log: EventLog,
  given: TaskEnding,
  signals: EndingSignals,
  outcome: UnwrittenOutcome | null = null,
): Promise<boolean> {
  const { clock } = parts;
  const { signal, stopping, retries } = signals;
  const endedAt = clock.now();
  let own = given;
  let isBare = false;
  let isLate = false;
  for (let wait = RETRY_FIRST_MS; ; wait = Math.min(wait * 2, RETRY_LAST_MS)) {
    const interruption = interruptionOf(signal);
    const ending = interruption?.ending ?? own;
    const at = interruption?.ending ? interruption.at : endedAt;
    try {
      log.flush();
      const unsaved = { firstId: log.savedUpTo + 1, frames: log.after(log.savedUpTo) };
      const remains = { unsaved, outcome, isBare };
      const frame = await parts.db.tx(task.workspaceId, async (tx) => {
        const last = await finishTask(parts, tx, task, { ...ending, at, isLate }, remains);
        if (last !== null) {
          await parts.hooks.ending(tx, { ...task, status: ending.status, error: ending.error });
          await interruption?.decision?.write(tx);
        }
        return last;
      });
      log.close(frame);
      parts.hub.close(task.id);
      if (frame !== null)
        parts.signals.ended.emit({ status: ending.status, durationMs: at - task.createdAt });
      return true;
    } catch (refusal) {
      let error: unknown = refusal;
      if (outcome?.isUnwritten) {
        // Alone, the outcome shows which of the two was refused.
        if (!(error instanceof ClaimLost)) error = await refusalOf(outcome);
        if (error === undefined) continue;
        own = error instanceof StoreUnavailable ? unrecorded() : internal();
        if (!(error instanceof StoreUnavailable || error instanceof ClaimLost)) {
          parts.log.error("the outcome of a model call was refused", { task: task.id, error });
          continue;
        }
      }
      if (error instanceof ClaimLost) {
        log.close(null);
        parts.hub.close(task.id);
        const cancelled = interruptionOf(signal);
        if (cancelled?.ending && cancelled.decision) {
          const queued = { workspaceId: task.workspaceId, taskId: task.id, agentId: task.agentId };
          parts.signals.endLost.emit({ queued, interruption: cancelled });
        }
        return false;
      }
      const isUnavailable = error instanceof StoreUnavailable;
      const latest = interruptionOf(signal);
      if (isUnavailable) {
        latest?.defer();
        retries.refused.emit();
      }
      if (isUnavailable ? stopping.aborted : isBare) {
        const facts = { task: task.id, status: ending.status, code: ending.error?.code };
        parts.log.error("a task's end cannot be written", { ...facts, ...latest?.decision?.facts(), error });
        log.close(null);
        parts.hub.close(task.id);
        return false;
      }
      if (isUnavailable) {
        if (!isLate) parts.log.warn("a task's end cannot be written yet", { task: task.id, error });
        isLate = true;
        await pause(clock, wait, signals);
      } else {
        parts.log.error("a task's end was refused, and is written again as a bare failure", {
          task: task.id,
          owed: outcome?.owed?.credits ?? 0,
          error,
        });
        own = internal();
        isBare = true;
      }
    }
  }
}

/** Writes an outcome in a transaction of its own. Undefined if it is written, otherwise why it was refused. */
async function refusalOf(outcome: UnwrittenOutcome): Promise<unknown> {
  try {
    await outcome.writeAlone();
    return undefined;
  } catch (error) {
    return error;
  }
}

/**
 * Resolves after the given time, when a signal that was not yet aborted aborts, or when all retries are triggered.
 */
async function pause(clock: Clock, ms: number, { signal, stopping, retries }: EndingSignals): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const wake = () => resolve();
  const cancel = clock.after(ms, wake);
  const open = [signal, stopping].filter(({ aborted }) => !aborted);
  for (const each of open) each.addEventListener("abort", wake);
  const forget = retries.now.listen(wake);
  await promise;
  cancel();
  forget();
  for (const each of open) each.removeEventListener("abort", wake);
}
