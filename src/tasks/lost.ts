import { recordUsage } from "../gate/usage/record.ts";
import type { Draft } from "../ledger/entry.ts";
import type { Tx } from "../store/db.ts";
import { chargeTask, closeModelCall, type ModelCallCharge } from "./charges.ts";
import type { TaskParts } from "./parts.ts";
import { markCallLost } from "./store.ts";
import type { Task } from "./task.ts";

/** The cost of a model call whose outcome could not be written. Whoever ends the task settles it. */
export interface OwedCharge extends ModelCallCharge {
  /** Seq of the call's intent. */
  readonly ref: number;
}

/** The parts needed to record lost calls. */
export type LostParts = Pick<TaskParts, "ledger" | "budgets" | "clock">;

/**
 * Records an outcome for each of a task's calls that has none, because the process died or the store could not be
 * written before the real outcome was on disk. Afterwards no intent is open. An open model call is charged what is
 * owed for it or, if its cost was lost with the process, what was reserved for it. A tool call is charged its price,
 * since it may have been made.
 * @returns the task with these charges added
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

/** @returns the micro-credits charged */
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
