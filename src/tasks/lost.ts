import { recordUsage } from "../gate/usage/record.ts";
import type { Draft } from "../ledger/entry.ts";
import type { Tx } from "../store/db.ts";
import { chargeTask, closeModelCall, type ModelCallCharge } from "./charges.ts";
import type { TaskParts } from "./parts.ts";
import { markCallLost } from "./store.ts";
import type { Task } from "./task.ts";

/** What a model call cost whose outcome could not be written: whoever ends the task settles it. */
export interface OwedCharge extends ModelCallCharge {
  /** Seq of the call's intent. */
  readonly ref: number;
}

/** What recording what was lost takes. */
export type LostParts = Pick<TaskParts, "ledger" | "budgets" | "clock">;

/**
 * Writes an outcome for each call of a task that has none: the process died, or the store could not be written, before
 * the real one was on disk. No intent stays open. The open call of a model is charged what is owed of it or, where what it
 * cost died with the process that knew it, what was reserved for it; a tool call its price, since it may have been made.
 * @returns the task with these charges added to it.
 */
export async function recordLost(
  parts: LostParts,
  tx: Tx,
  task: Task,
  owed: OwedCharge | null,
): Promise<Task> {
  const settled =
    task.openModelCall === null ? task : await recordLostModel(parts, tx, task, task.openModelCall, owed);
  return { ...settled, credits: settled.credits + (await recordLostTools(parts, tx, task)) };
}

async function recordLostModel(
  { ledger, budgets, clock }: LostParts,
  tx: Tx,
  task: Task,
  ref: number,
  owed: OwedCharge | null,
): Promise<Task> {
  const { workspaceId, id } = task;
  const known = owed?.ref === ref ? owed : null;
  const charge = known ?? { credits: task.openReserved, inputTokens: 0, outputTokens: 0, steps: 0 };
  const tokens = { input_tokens: charge.inputTokens, output_tokens: charge.outputTokens };
  await ledger.append(tx, workspaceId, {
    ...lost(task, "model.call", ref),
    model: task.model ?? undefined,
    ...(known && { credits: charge.credits, detail: tokens }),
    ...(!known && charge.credits > 0 && { credits: charge.credits, detail: { usage: "estimated" } }),
  });
  await closeModelCall(tx, workspaceId, id, charge);
  await budgets.charge(tx, payerOf(task), charge.credits);
  await recordUsage(tx, {
    ...{ workspaceId, agentId: task.agentId, kind: "model", name: task.model ?? "", outcome: "failed" },
    ...{ at: clock.now(), durationMs: null },
    ...charge,
  });
  return {
    ...task,
    credits: task.credits + charge.credits,
    inputTokens: task.inputTokens + charge.inputTokens,
    outputTokens: task.outputTokens + charge.outputTokens,
    steps: task.steps + charge.steps,
  };
}

/** @returns micro-credits that were charged */
async function recordLostTools({ ledger, budgets, clock }: LostParts, tx: Tx, task: Task): Promise<number> {
  const { workspaceId, id } = task;
  let charged = 0;
  for (const call of task.toolsCalled) {
    if (call.status !== "unknown" || call.durationMs !== null || call.outcomeSeq !== null) continue;
    const draft = { ...lost(task, "tool.call", call.intentSeq), tool: call.tool };
    const credits = call.price === 0 ? undefined : call.price;
    const outcomeSeq = await ledger.append(tx, workspaceId, { ...draft, credits });
    await markCallLost(tx, workspaceId, id, call.id, outcomeSeq);
    await chargeTask(tx, workspaceId, id, call.price);
    await budgets.charge(tx, payerOf(task), call.price);
    await recordUsage(tx, {
      ...{ workspaceId, agentId: task.agentId, kind: "tool", name: call.tool, outcome: "unknown" },
      ...{ at: clock.now(), durationMs: null, credits: call.price },
    });
    charged += call.price;
  }
  return charged;
}

function payerOf({ workspaceId, agentId, agent }: Task) {
  return { workspaceId, agent: { id: agentId, name: agent } };
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
