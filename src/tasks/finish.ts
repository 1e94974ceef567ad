import type { Draft } from "../ledger/entry.ts";
import type { Tx } from "../store/db.ts";
import { saveEvents } from "./event-store.ts";
import { encodeFrame } from "./frames.ts";
import type { TaskParts } from "./parts.ts";
import { findTask, markFinished } from "./store.ts";
import type { FinalStatus, Task, TaskErrorCode } from "./task.ts";
import { viewTask } from "./view.ts";

export interface Ending {
  readonly status: FinalStatus;
  readonly error: { readonly code: TaskErrorCode; readonly message: string } | null;
  /** The answer; null when there is none. */
  readonly output: string | null;
}

/** Events in memory that no block of the store holds yet. */
export interface UnsavedEvents {
  readonly firstId: number;
  readonly frames: readonly Uint8Array[];
}

/**
 * Ends a task in one transaction: the outcome in the ledger, the row, the remaining events and `task.finished` itself.
 * @returns the last frame, for the readers; null when the task had ended before.
 */
export async function finishTask(
  parts: Pick<TaskParts, "ledger" | "clock">,
  tx: Tx,
  task: Task,
  ending: Ending,
  unsaved: UnsavedEvents,
): Promise<{ task: Task; frame: Uint8Array } | null> {
  const before = await findTask(tx, task.workspaceId, task.id);
  if (!before || before.finishedAt !== null) return null;
  const finishedAt = parts.clock.now();
  const finishSeq = await parts.ledger.append(tx, task.workspaceId, outcomeDraft(before, ending));
  await markFinished(tx, task.workspaceId, task.id, {
    status: ending.status,
    error: ending.error,
    finishSeq,
    finishedAt,
  });
  const finished: Task = {
    ...before,
    status: ending.status,
    error: ending.error,
    output: ending.output,
    openModelCall: null,
    finishedAt,
  };
  const lastId = unsaved.firstId + unsaved.frames.length;
  const frame = encodeFrame(lastId, "task.finished", viewTask(finished));
  await saveEvents(tx, task.workspaceId, task.id, unsaved.firstId, [...unsaved.frames, frame]);
  return { task: finished, frame };
}

function outcomeDraft(task: Task, ending: Ending): Draft {
  return {
    phase: "outcome",
    ref: task.dispatchSeq,
    action: "task.dispatch",
    outcome: ending.status,
    code: ending.error?.code,
    channel: "system",
    actor: task.createdBy,
    agent: task.agent,
    tier: task.tier,
    model: task.model ?? undefined,
    task: task.id,
    credits: task.credits,
    detail: { input_tokens: task.inputTokens, output_tokens: task.outputTokens, steps: task.steps },
    output: ending.output ?? undefined,
  };
}
