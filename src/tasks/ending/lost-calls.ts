import { type Payer, settleCall } from "../../gate/settle.ts";
import type { EntryDraft } from "../../ledger/entry.ts";
import type { ProvenTask } from "../../ledger/reading/proven-task.ts";
import type { Tx } from "../../store/db.ts";
import type { TaskParts } from "../parts.ts";
import { chargeTask, closeModelCall, type ModelCallCharge } from "../rows/charges.ts";
import { markCallLost } from "../rows/tool-calls.ts";
import type { Task } from "../task.ts";

/** The cost of a model call whose outcome could not be written. The code that ends the task settles it. */
export interface OwedCharge extends ModelCallCharge {
  /** Seq of the call's intent. */
  readonly ref: number;
}

/** The parts needed to record lost calls. */
export type LostCallParts = Pick<TaskParts, "ledger" | "budgets" | "clock">;

/** A call without an outcome. */
export interface UnsettledCall {
  /** Seq of its intent. */
  readonly seq: number;
  readonly kind: "model" | "tool";
  /** The model or the tool. */
  readonly name: string;
  /** Micro-credits to charge if its cost is unknown: the reservation of a model call, or a tool call's price. */
  readonly price: number;
}

/** The task's open calls according to its rows, as this process has written them. */
export function openCallsOf({ openModelCall, model, openReserved, toolsCalled }: Task): UnsettledCall[] {
  const tools = toolsCalled
    .filter((call) => call.status === "unknown" && call.durationMs === null && call.outcomeSeq === null)
    .map(({ intentSeq, tool, price }) => ({ seq: intentSeq, kind: "tool", name: tool, price }) as const);
  if (openModelCall === null) return tools;
  return [{ seq: openModelCall, kind: "model", name: model ?? "", price: openReserved }, ...tools];
}

/** The task's open calls according to its signed entries. Calls of an earlier process MUST be read from there. */
export function openCallsIn({ open }: ProvenTask): UnsettledCall[] {
  const calls: UnsettledCall[] = [];
  for (const [seq, { action, model = "", tool = "", detail }] of open) {
    const isModel = action === "model.call";
    if (!isModel && action !== "tool.call") continue;
    const price = isModel ? detail?.reserved : detail?.price;
    const called = isModel
      ? ({ kind: "model", name: model } as const)
      : ({ kind: "tool", name: tool } as const);
    calls.push({ seq, ...called, price: typeof price === "number" ? price : 0 });
  }
  return calls;
}

/** The payer for a task, according to its row. */
function payerOf({ workspaceId, agentId, agent }: Task): Payer {
  return { workspaceId, agent: { id: agentId, name: agent } };
}

/**
 * Records an outcome for each of a task's calls that has none, because the process died or the store could not be
 * written before the real outcome was on disk. Afterwards no intent is open. An open model call is charged the amount
 * owed for it or, if that was lost with the process, the amount reserved for it. A tool call is charged its price,
 * since it may have been made.
 * @returns the task with these charges added
 */
export async function recordLost(
  parts: LostCallParts,
  tx: Tx,
  task: Task,
  calls: readonly UnsettledCall[],
  owed: OwedCharge | null,
  payer: Payer = payerOf(task),
): Promise<Task> {
  let settled = task;
  for (const call of calls) {
    const charge = await recordLostCall(parts, tx, task, call, owed, payer);
    settled = {
      ...settled,
      credits: settled.credits + charge.credits,
      inputTokens: settled.inputTokens + charge.inputTokens,
      outputTokens: settled.outputTokens + charge.outputTokens,
      steps: settled.steps + charge.steps,
    };
  }
  return settled;
}

async function recordLostCall(
  parts: LostCallParts,
  tx: Tx,
  task: Task,
  { seq, kind, name, price }: UnsettledCall,
  owed: OwedCharge | null,
  payer: Payer,
): Promise<ModelCallCharge> {
  const { workspaceId, id } = task;
  const known = kind === "model" && owed?.ref === seq ? owed : null;
  const charge = known ?? { credits: price, inputTokens: 0, outputTokens: 0, steps: 0 };
  const isEstimate = kind === "model" && !known && price > 0;
  const { credits, inputTokens, outputTokens } = charge;
  const entry = {
    ...lost(task, seq),
    action: `${kind}.call`,
    [kind]: name,
    credits: known || credits > 0 ? credits : undefined,
    ...(isEstimate && { detail: { usage: "estimated" } }),
    ...(known && { detail: { input_tokens: inputTokens, output_tokens: outputTokens } }),
  };
  const outcome = kind === "model" ? "failed" : "unknown";
  const usage = { kind, name, outcome, durationMs: null, inputTokens, outputTokens };
  const outcomeSeq = await settleCall(tx, parts, { payer, entry, credits, owner: id, isLost: true, usage });
  if (kind === "model") {
    closeModelCall(tx, workspaceId, id, charge);
  } else {
    markCallLost(tx, workspaceId, id, seq, outcomeSeq);
    chargeTask(tx, workspaceId, id, charge.credits);
  }
  return charge;
}

function lost(task: Task, ref: number): Omit<EntryDraft, "action"> {
  return {
    phase: "outcome",
    outcome: "failed",
    code: "interrupted",
    channel: "system",
    actor: task.createdBy,
    agent: task.agent,
    tier: task.tier,
    task: task.id,
    ref,
  };
}
