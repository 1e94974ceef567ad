import type { Agent } from "../access/agents.ts";
import type { Clock } from "../base/clock.ts";
import type { EntryDraft } from "../ledger/entry.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Tx } from "../store/db.ts";
import type { Budgets } from "./budget.ts";
import { recordUsage } from "./usage/counts.ts";
import type { UsageRecord } from "./usage/record.ts";

export interface SettleParts {
  readonly ledger: Pick<Ledger, "append">;
  readonly budgets: Pick<Budgets, "charge" | "settle" | "settleLost">;
  readonly clock: Pick<Clock, "now">;
}

/** The budgets that a call is charged to. Without an agent, only the workspace pays. */
export interface Payer {
  readonly workspaceId: number;
  readonly agent: Pick<Agent, "id" | "name"> | null;
}

/** A model or tool call that has ended, or is lost. */
export interface EndedCall {
  readonly payer: Payer;
  /** The entry of its outcome. */
  readonly entry: EntryDraft;
  /** Micro-credits to charge. */
  readonly credits: number;
  /** The owner of the call's reservation, which ends in the same transaction. Absent if it cannot have one. */
  readonly owner?: string;
  /** Whether the reservation is that of a process that has died. */
  readonly isLost?: boolean;
  /** The fields for the statistics. */
  readonly usage: Omit<UsageRecord, "workspaceId" | "agentId" | "at" | "credits">;
}

/**
 * Records, charges and counts the outcome of a call, in one transaction: there is never one without the others. The
 * caller releases the call's reservation once the transaction is committed.
 * @returns seq of the outcome's entry
 */
export async function settleCall(
  tx: Tx,
  { ledger, budgets, clock }: SettleParts,
  { payer, entry, credits, owner, isLost = false, usage }: EndedCall,
): Promise<number> {
  const { workspaceId, agent } = payer;
  const seq = await ledger.append(tx, workspaceId, entry);
  await budgets.charge(tx, payer, credits);
  if (owner !== undefined) {
    if (isLost) budgets.settleLost(tx, workspaceId, owner);
    else budgets.settle(tx, workspaceId, owner);
  }
  recordUsage(tx, { ...usage, workspaceId, agentId: agent?.id ?? null, credits, at: clock.now() });
  return seq;
}
