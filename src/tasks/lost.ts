import type { Draft } from "../ledger/entry.ts";
import type { Tx } from "../store/db.ts";
import { recordSpending } from "./budget.ts";
import type { TaskParts } from "./parts.ts";
import { closeModelCall, type ModelCallCharge, markCallLost } from "./store.ts";
import type { Task } from "./task.ts";

/** What a model call cost whose outcome could not be written: whoever ends the task settles it. */
export interface OwedCharge extends ModelCallCharge {
  /** Seq of the call's intent. */
  readonly ref: number;
}

/** What recording what was lost takes. */
export type LostParts = Pick<TaskParts, "ledger" | "clock">;

/**
 * Writes an outcome for each call of a task that has none: the process died, or the store could not be written, before
 * the real one was on disk. No intent stays open, and what is owed of the open model call is charged.
 * @returns the task with that charge added to it.
 */
export async function recordLost(
  { ledger, clock }: LostParts,
  tx: Tx,
  task: Task,
  owed: OwedCharge | null,
): Promise<Task> {
  const { workspaceId } = task;
  let settled = task;
  if (task.openModelCall !== null) {
    const charge = owed?.ref === task.openModelCall ? owed : null;
    await ledger.append(tx, workspaceId, {
      ...lost(task, "model.call", task.openModelCall),
      model: task.model ?? undefined,
      ...(charge && {
        credits: charge.credits,
        detail: { input_tokens: charge.inputTokens, output_tokens: charge.outputTokens },
      }),
    });
    if (charge) {
      await closeModelCall(tx, workspaceId, task.id, charge);
      await recordSpending(tx, workspaceId, task.agentId, clock.now(), charge.credits);
      settled = {
        ...task,
        credits: task.credits + charge.credits,
        inputTokens: task.inputTokens + charge.inputTokens,
        outputTokens: task.outputTokens + charge.outputTokens,
        steps: task.steps + charge.steps,
      };
    }
  }
  for (const call of task.toolsCalled) {
    if (call.status !== "unknown" || call.durationMs !== null || call.outcomeSeq !== null) continue;
    const draft = { ...lost(task, "tool.call", call.intentSeq), tool: call.tool };
    const outcomeSeq = await ledger.append(tx, workspaceId, draft);
    await markCallLost(tx, workspaceId, task.id, call.id, outcomeSeq);
  }
  return settled;
}

function lost(task: Task, action: string, ref: number): Draft {
  return {
    phase: "outcome",
    outcome: "failed",
    code: "interrupted",
    channel: "system",
    actor: task.createdBy,
    agent: task.agent,
    tier: task.tier,
    task: task.id,
    action,
    ref,
  };
}
