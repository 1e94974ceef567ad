import type { Agent } from "../../access/agents.ts";
import type { Clock } from "../../base/clock.ts";
import type { Budgets } from "../../gate/budget.ts";
import { settleCall } from "../../gate/settle.ts";
import type { UsageRecord } from "../../gate/usage/record.ts";
import type { UsageTally } from "../../gate/usage/tally.ts";
import type { EntryDraft } from "../../ledger/entry.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Db } from "../../store/db.ts";

export interface OutcomeParts {
  readonly db: Db;
  readonly ledger: Ledger;
  readonly budgets: Budgets;
  readonly usage: UsageTally;
  readonly clock: Clock;
}

/** A call outside of tasks that has ended. */
export interface FinishedCall {
  readonly workspaceId: number;
  readonly agent: Agent | null;
  readonly tool: string;
  readonly durationMs: number;
}

/**
 * Records and charges the outcome of a call. If it costs nothing, it shares a transaction with other entries and is
 * counted in memory.
 */
export async function settle(
  { db, ledger, budgets, usage, clock }: OutcomeParts,
  call: FinishedCall,
  draft: EntryDraft,
  charge: { readonly isSent: boolean; readonly price: number },
): Promise<void> {
  const { workspaceId, agent } = call;
  // As for a task's calls: it is unknown what an interrupted call did.
  const outcome = draft.outcome === "cancelled" ? (charge.isSent ? "unknown" : "denied") : draft.outcome;
  const used = usageOf(call, outcome, clock.now());
  const credits = charge.isSent ? charge.price : 0;
  if (credits === 0) {
    await ledger.record(workspaceId, draft);
    usage.note(used);
    return;
  }
  const ended = { payer: { workspaceId, agent }, entry: { ...draft, credits }, credits, usage: used };
  await db.tx((tx) => settleCall(tx, { ledger, budgets, clock }, ended));
}

/** The statistics record of a call that ended at `at`. */
export function usageOf(
  { workspaceId, agent, tool, durationMs }: FinishedCall,
  outcome: string,
  at: number,
): UsageRecord {
  return { workspaceId, agentId: agent?.id ?? null, kind: "tool", name: tool, outcome, at, durationMs };
}

/** The outcome as it is written late. Its text is left out: nobody has received it, and it may be long. */
export function lateDraft({ output: _, ...draft }: EntryDraft, lateMs: number): EntryDraft {
  return { ...draft, detail: { ...draft.detail, late_ms: Math.max(0, Math.round(lateMs)) } };
}
