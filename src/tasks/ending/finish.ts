import { recordUsage } from "../../gate/usage/counts.ts";
import type { EntryDraft } from "../../ledger/entry.ts";
import type { Tx } from "../../store/db.ts";
import { withdrawApprovals } from "../approvals/rows.ts";
import { encodeFrame } from "../events/frames.ts";
import type { EventHub } from "../events/hub.ts";
import { saveEvents } from "../events/store.ts";
import type { TaskParts } from "../parts.ts";
import { findEndingTask, markFinished } from "../rows/tasks.ts";
import { forgetAnswers } from "../run/progress.ts";
import { type FinalStatus, notBefore, type Task, type TaskErrorCode } from "../task.ts";
import { viewTaskBriefly } from "../view.ts";
import { type LostCallParts, type OwedCharge, openCallsOf, recordLost } from "./lost-calls.ts";

export interface TaskEnding {
  readonly status: FinalStatus;
  readonly error: { readonly code: TaskErrorCode; readonly message: string } | null;
  /** The answer; null if there is none. */
  readonly output: string | null;
}

/** An ending with the time when the task reached it, and whether the store has refused it before. */
export interface TimedTaskEnding extends TaskEnding {
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
  readonly isLate: boolean;
}

/** The outcome of a run's last model call, which is written with the task's end. */
export interface UnwrittenOutcome {
  readonly isUnwritten: boolean;
  /** The cost of a call whose outcome could not be written at all. The task's end settles it. */
  readonly owed: OwedCharge | null;
  /** Writes the outcome, if there is one, in the transaction of the end. */
  writeWithEnd(tx: Tx): Promise<void>;
  /**
   * Writes the outcome in a transaction of its own, after the end was refused.
   * @throws whatever refuses it; from then on its cost is `owed`
   */
  writeAlone(): Promise<void>;
}

/** Data of the run that is written with the task's end. */
export interface UnsavedRun {
  /** Events in memory that are not stored yet. */
  readonly unsaved: { readonly firstId: number; readonly frames: readonly Uint8Array[] };
  readonly outcome: UnwrittenOutcome | null;
  /** Whether to omit everything optional: for a second attempt after the store refused a value. */
  readonly isBare: boolean;
}

/** The logs of tasks that do not run. */
type RestedLogs = Pick<EventHub, "find" | "relay">;

/**
 * Ends a task in one transaction: the outcome in the ledger, the row, the remaining events and `task.finished`.
 * @returns the last frame, for the readers; null if the task had already ended
 */
export async function finishTask(
  parts: LostCallParts & Pick<TaskParts, "claims" | "signals"> & { readonly hub: RestedLogs },
  tx: Tx,
  task: Task,
  ending: TimedTaskEnding,
  { unsaved, outcome, isBare }: UnsavedRun,
): Promise<Uint8Array | null> {
  await outcome?.writeWithEnd(tx);
  const stored = await findEndingTask(tx, task.workspaceId, task.id);
  if (!stored || stored.task.finishedAt !== null) return null;
  const { task: found, hasAnswers, isAwaited } = stored;
  // A queued task has no open intent: lost calls were recorded in the transaction that queued it again.
  const before =
    found.status === "queued"
      ? found
      : await recordLost(parts, tx, found, openCallsOf(found), isBare ? null : (outcome?.owed ?? null));
  const finishedAt = notBefore(found, ending.at);
  const draft = outcomeDraft(before, ending, parts.clock.now());
  const finishSeq = await parts.ledger.append(
    tx,
    task.workspaceId,
    isBare ? { ...draft, credits: undefined, detail: undefined } : draft,
  );
  await markFinished(tx, task.workspaceId, task.id, {
    status: ending.status,
    error: ending.error,
    finishSeq,
    finishedAt,
  });
  parts.claims.end(tx, task.workspaceId, task.id);
  recordUsage(tx, {
    workspaceId: task.workspaceId,
    agentId: task.agentId,
    kind: "task",
    name: "",
    outcome: ending.status,
    at: finishedAt,
    durationMs: finishedAt - task.createdAt,
  });
  if (hasAnswers) forgetAnswers(tx, task.workspaceId, task.id);
  const withdrawn = isAwaited ? await withdrawApprovals(tx, task.workspaceId, task.id) : [];
  tx.onCommit(() => {
    parts.signals.changed.emit({ workspaceId: task.workspaceId, task: task.id });
    for (const callId of withdrawn)
      parts.signals.approvalChanged.emit({ workspaceId: task.workspaceId, task: task.id, callId });
  });
  const finished: Task = {
    ...before,
    status: ending.status,
    error: ending.error,
    output: ending.output,
    openModelCall: null,
    finishedAt,
  };
  const firstId = await firstFreeId(parts.hub, tx, found, unsaved.firstId);
  const lastId = firstId + unsaved.frames.length;
  const frame = encodeFrame(lastId, "task.finished", viewTaskBriefly(finished));
  saveEvents(tx, task.workspaceId, task.id, firstId, [...unsaved.frames, frame]);
  return frame;
}

/** While a task does not run, other nodes may store its events. They have none in memory, and neither has this one. */
async function firstFreeId(hub: RestedLogs, tx: Tx, task: Task, ownId: number): Promise<number> {
  if (hub.relay === null || task.status === "running") return ownId;
  const nextId = await hub.relay.nextId(tx, task);
  if (nextId <= ownId) return ownId;
  tx.onCommit(() => hub.find(task.id)?.skipTo(nextId));
  return nextId;
}

function outcomeDraft(task: Task, ending: TimedTaskEnding, now: number): EntryDraft {
  const late = ending.isLate ? { late_ms: Math.max(0, now - ending.at) } : {};
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
    detail: { input_tokens: task.inputTokens, output_tokens: task.outputTokens, steps: task.steps, ...late },
    output: ending.output ?? undefined,
  };
}
