import type { Clock } from "../../base/clock.ts";
import type { EntryDraft } from "../../ledger/entry.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Db, Tx } from "../../store/db.ts";
import type { Budgets } from "../budget.ts";
import { type Payer, type SettleParts, settleCall } from "../settle.ts";
import type { UsageRecord } from "../usage/record.ts";
import type { UsageTally } from "../usage/tally.ts";

export interface DirectSettleParts extends SettleParts {
  readonly db: Db;
  readonly ledger: Ledger;
  readonly usage: UsageTally;
}

/** A call outside of tasks that has ended. */
export interface EndedDirectCall {
  readonly payer: Payer;
  /** The entry of its outcome. */
  readonly entry: EntryDraft;
  /** Micro-credits to charge. */
  readonly credits: number;
  /** The owner of the call's reservation. */
  readonly owner: string;
  /** The fields for the statistics. */
  readonly usage: Omit<UsageRecord, "workspaceId" | "agentId" | "at" | "credits">;
  /** Called in the transaction of the outcome, with its seq: what is written together with it. */
  readonly also?: ((tx: Tx, seq: number) => Promise<void>) | undefined;
}

/**
 * Records and charges the outcome of a call. If it costs nothing, it shares a transaction with other entries and is
 * counted in memory.
 */
export async function settleDirectCall(parts: DirectSettleParts, call: EndedDirectCall): Promise<void> {
  const { db, ledger, usage, clock } = parts;
  const { payer, entry, credits, also } = call;
  if (credits === 0) {
    if (also)
      await db.tx(payer.workspaceId, async (tx) =>
        also(tx, await ledger.append(tx, payer.workspaceId, entry)),
      );
    else await ledger.record(payer.workspaceId, entry);
    usage.note(usageRecordOf(payer, call.usage, clock.now()));
    return;
  }
  await db.tx(payer.workspaceId, async (tx) => {
    const seq = await settleCall(tx, parts, { ...call, entry: { ...entry, credits } });
    await also?.(tx, seq);
  });
}

/** The statistics record of a call that ended at `at`. */
export function usageRecordOf(
  { workspaceId, agent }: Payer,
  usage: EndedDirectCall["usage"],
  at: number,
): UsageRecord {
  return { ...usage, workspaceId, agentId: agent?.id ?? null, at };
}

/** The parts needed to write an outcome late, besides those of `settleDirectCall`. */
export interface LateParts extends DirectSettleParts {
  readonly budgets: Pick<Budgets, "charge" | "settle" | "settleLost" | "release">;
  readonly clock: Pick<Clock, "now" | "monotonic">;
}

/** An outcome without its text: if nobody has received it, it is omitted, since it may be long. */
export function withoutOutput({ output: _, ...draft }: EntryDraft): EntryDraft {
  return draft;
}

/** The outcome as it is written late. */
export function lateDraft(draft: EntryDraft, lateMs: number): EntryDraft {
  return { ...draft, detail: { ...draft.detail, late_ms: Math.max(0, Math.round(lateMs)) } };
}

/**
 * Returns a function that writes an outcome late and releases what its call has reserved. MUST be created here and
 * not where a call ends: a function created in an async function keeps all variables of that function alive,
 * including the answer.
 * @param call its entry is kept in memory, with its text if it has one
 * @param since when the call ended, by the monotonic clock
 * @param done called once it is written
 */
export function lateSettling(
  parts: LateParts,
  call: EndedDirectCall,
  { since, done }: { readonly since: number; done?(): void },
): () => Promise<void> {
  const { clock, budgets } = parts;
  return async () => {
    await settleDirectCall(parts, { ...call, entry: lateDraft(call.entry, clock.monotonic() - since) });
    budgets.release(call.owner);
    done?.();
  };
}
