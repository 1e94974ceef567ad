import { agentAt } from "../../access/agent-at.ts";
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Detail, EntryDraft } from "../../ledger/entry.ts";
import type { Admit, Ledger } from "../../ledger/ledger.ts";
import { LedgerChanged } from "../../ledger/ledger-changed.ts";
import type { LedgerLists } from "../../ledger/reading/lists.ts";
import { parsedEntry } from "../../ledger/reading/parsed-entry.ts";
import { type Db, StoreUnavailable, type Tx } from "../../store/db.ts";
import type { Budgets, Claim } from "../budget.ts";
import type { Call } from "../call.ts";
import { type EndedCall, settleCall } from "../settle.ts";
import { recordUsage } from "../usage/counts.ts";
import type { CallOwners } from "./call-owners.ts";

/** A call that costs something. */
export interface PaidCall {
  readonly budgets: Budgets;
  /** The amount that the call reserves, read in its transaction. */
  claim(tx: Tx): Promise<Claim>;
  /** The details of the intent, including what a lost call is charged. @param reserved micro-credits */
  detail(reserved: number): Detail;
  /** Aborts when the caller no longer waits for a budget. */
  readonly signal: AbortSignal;
}

/**
 * Records the intent of `call`. From then on it counts as in flight until its outcome is on disk: if the process dies before,
 * the next start finds the intent without an outcome and reports it. If the call costs something, it waits for its budgets
 * to be reserved.
 * @param admit called in the intent's transaction if the call is free; throws if the call must not be made after all
 * @returns the intent's seq, once it is on disk. @throws Problem 402 `credits_exhausted`
 */
export function beginCall(
  call: Call,
  input: string | undefined,
  paid: PaidCall | null = null,
  admit?: Admit,
): Promise<number> {
  if (!paid) return call.intend(input, admit);
  const { budgets, signal } = paid;
  return budgets.admit(signal, (reserve) =>
    call.commit(async (tx, record) => {
      const reserved = await reserve(tx, await paid.claim(tx));
      return record({ phase: "intent", outcome: "allowed", input, detail: paid.detail(reserved) });
    }),
  );
}

export interface LostCallsParts {
  readonly db: Db;
  readonly ledger: Ledger;
  readonly lists: Pick<LedgerLists, "entry">;
  readonly owners: CallOwners;
  readonly budgets: Budgets;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Reports the calls that were in flight when their process died. It is unknown whether they were carried out,
 * and none is repeated. Each is charged, since it may have been made: a tool call at its price, a model call at the
 * reserved amount. Only counting tokens is free. Called at startup, and when another node is gone.
 *
 * Which calls were open is read from entries that were verified against the signed tree: only this server can cause a
 * call to be recorded, or charged to anyone, and nobody who can write the file can hide one. The agent that an entry
 * names pays, or only the workspace: see `agentAt`.
 *
 * One call that cannot be reported does not keep the server from starting: it is logged, and left to the next start.
 *
 * @throws LedgerChanged; StoreUnavailable
 */
export async function reportLostCalls(parts: LostCallsParts, workspaceId: number): Promise<void> {
  for (const ref of await parts.owners.lost(workspaceId)) {
    try {
      await reportLostCall(parts, workspaceId, ref);
    } catch (error) {
      if (error instanceof LedgerChanged || error instanceof StoreUnavailable) throw error;
      parts.log.error(
        "a call interrupted by the last stop cannot be reported and is left to the next start",
        {
          ...{ workspaceId, intent: ref },
          error,
        },
      );
    }
  }
}

async function reportLostCall(
  { db, ledger, lists, owners, budgets, clock }: LostCallsParts,
  workspaceId: number,
  ref: number,
): Promise<void> {
  const intent = await lists.entry(workspaceId, ref);
  if (!intent) return;
  const { action = "tool.call", actor = "system", detail, ts = "", ...call } = parsedEntry(intent.bytes);
  const { agent, tool, model, tier, request_id: requestId } = call;
  const isModel = action === "model.call";
  const cost = isModel ? detail?.reserved : detail?.price;
  const credits = typeof cost === "number" ? cost : undefined;
  const dialect = typeof detail?.dialect === "string" ? detail.dialect : undefined;
  const client = dialect === undefined ? undefined : { dialect, firstTokenMs: null };
  const usage: EndedCall["usage"] = isModel
    ? { kind: "model", name: model ?? "", outcome: "failed", durationMs: null, client }
    : { kind: "tool", name: tool ?? "", outcome: "unknown", durationMs: null };
  await db.tx(workspaceId, async (tx) => {
    if (!(await owners.takeLost(tx, workspaceId, ref))) return;
    const entry: EntryDraft = {
      ...{ phase: "outcome", ref, action, outcome: "failed" },
      code: action === "tool.call" ? "unknown" : "interrupted",
      ...{ channel: "system", actor, agent, tool, model, tier, requestId, credits },
      ...(dialect === undefined ? {} : { detail: { dialect } }),
    };
    const payer = { workspaceId, agent: await agentAt(tx, workspaceId, agent, Date.parse(ts)) };
    if (action === "model.count") {
      await ledger.append(tx, workspaceId, entry);
      const counted = { kind: "count", name: dialect ?? "", outcome: "failed", durationMs: null } as const;
      return recordUsage(tx, { ...payer, ...counted, agentId: payer.agent?.id ?? null, at: clock.now() });
    }
    await settleCall(tx, { ledger, budgets, clock }, { payer, entry, credits: credits ?? 0, usage });
  });
}

/**
 * Like `reportLostCalls`. While the ledger differs from the signed tree, reporting the calls is left to a later
 * start.
 */
export async function reportLost(parts: LostCallsParts, workspaceId: number): Promise<void> {
  try {
    await reportLostCalls(parts, workspaceId);
  } catch (error) {
    if (!(error instanceof LedgerChanged)) throw error;
    parts.log.error("calls interrupted by the last stop are not reported, because the ledger was changed", {
      workspaceId,
      error,
    });
  }
}
