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
  readonly budgets: Pick<Budgets, "charge">;
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
  { payer, entry, credits, usage }: EndedCall,
): Promise<number> {
  const { workspaceId, agent } = payer;
  const seq = await ledger.append(tx, workspaceId, entry);
  await budgets.charge(tx, payer, credits);
  recordUsage(tx, { ...usage, workspaceId, agentId: agent?.id ?? null, credits, at: clock.now() });
  return seq;
}
