import { tokenIdOf } from "../../access/caller.ts";
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Budgets, Claim } from "../../gate/budget.ts";
import type { Call } from "../../gate/call.ts";
import { settleCall } from "../../gate/settle.ts";
import type { EntryDraft } from "../../ledger/entry.ts";
import type { Admit, Ledger } from "../../ledger/ledger.ts";
import { LedgerChanged } from "../../ledger/ledger-changed.ts";
import type { LedgerLists } from "../../ledger/reading/lists.ts";
import { type ParsedEntry, parsedEntry } from "../../ledger/reading/parsed-entry.ts";
import type { Db, Tx } from "../../store/db.ts";

/** A call that costs something. */
export interface PaidCall {
  readonly budgets: Budgets;
  /** What the call reserves, read in its transaction. */
  claim(tx: Tx): Promise<Claim>;
  /** Micro-credits. */
  readonly price: number;
  /** Aborts when the caller no longer waits for a budget. */
  readonly signal: AbortSignal;
}

/**
 * Tracks in-flight calls outside of tasks. Each has its intent in the ledger, but no row of its own: at the first
 * one, the store records the entry from which calls may still be open, and now and then how far that has moved. After
 * a crash, the next start finds them by reading on from there. (Writing and deleting a row per call took 5 to 20 µs
 * each.)
 */
export class UnsettledCalls {
  readonly #db: Db;
  readonly #workspaces = new Map<
    number,
    { readonly intents: Set<number>; entering: number; from: number | null }
  >();

  constructor(db: Db) {
    this.#db = db;
  }

  /**
   * Records the intent of `call`, and that it is in flight. If it costs something, it waits for its budgets to be
   * reserved.
   * @param admit called in the intent's transaction if the call is free; throws if the call must not be made after all
   * @returns the intent's seq, once both are on disk. @throws Problem 402 `credits_exhausted`
   */
  async begin(call: Call, input: string, paid: PaidCall | null = null, admit?: Admit): Promise<number> {
    const { workspaceId } = call.caller;
    const open = this.#workspaces.get(workspaceId) ?? { intents: new Set(), entering: 0, from: null };
    this.#workspaces.set(workspaceId, open);
    open.entering += 1;
    try {
      const commit = (more: Partial<EntryDraft>, reserve?: (tx: Tx) => Promise<unknown> | undefined) =>
        call.commit(async (tx, record) => {
          await reserve?.(tx);
          const seq = await record({ phase: "intent", outcome: "allowed", input, ...more });
          if (open.from !== null) return seq;
          await noteFirst(tx, workspaceId, seq);
          tx.onCommit(() => {
            open.from = Math.min(open.from ?? seq, seq);
          });
          return seq;
        });
      let intent: number;
      if (paid) {
        const { budgets, price, signal } = paid;
        intent = await budgets.admit(signal, (reserve) =>
          commit({ detail: { price } }, async (tx) => reserve(tx, await paid.claim(tx))),
        );
      } else {
        intent = await (open.from === null ? commit({}, admit) : call.intend(input, admit));
      }
      open.intents.add(intent);
      return intent;
    } finally {
      open.entering -= 1;
    }
  }

  /**
   * Called when a call's outcome is on disk. If its outcome could not be written before the process ends, the call
   * stays open and the next start reports it.
   */
  ended(workspaceId: number, intent: number): void {
    this.#workspaces.get(workspaceId)?.intents.delete(intent);
  }

  /** Stores how far the position has moved. Called every few seconds, and at the end. */
  async save(): Promise<void> {
    for (const [workspaceId, open] of this.#workspaces) {
      if (open.from === null || open.entering > 0) continue;
      const first = open.intents.size === 0 ? null : Math.min(...open.intents);
      if (first === open.from) continue;
      // A call that begins during this write records its own position afterwards.
      open.from = first;
      await noteFrom(this.#db, workspaceId, first);
    }
  }
}

export interface LostCallsParts {
  readonly db: Db;
  readonly ledger: Ledger;
  readonly lists: Pick<LedgerLists, "read">;
  readonly budgets: Budgets;
  readonly clock: Clock;
}

/**
 * Reports the calls that were in flight when an earlier process died. It is unknown whether they were carried out,
 * and none is repeated. Each is charged its price, since it may have been made. Called once, at the start.
 *
 * The stored position only says where to begin. Which calls were open is read from entries that were verified against
 * the signed tree: only this server can cause a call to be recorded, or charged to anyone.
 *
 * @throws LedgerChanged
 */
export async function reportLostCalls(
  { db, ledger, lists, budgets, clock }: LostCallsParts,
  workspaceId: number,
): Promise<void> {
  const from = await db.get<{ value: string }>("SELECT value FROM meta WHERE key = $1", [keyOf(workspaceId)]);
  if (!from) return;
  const lost = new Map<number, ParsedEntry>();
  const noted = Number(from.value);
  const first = Number.isSafeInteger(noted) ? Math.max(1, noted) : 1;
  const span = { first, last: Number.MAX_SAFE_INTEGER, order: "asc" } as const;
  for await (const entries of lists.read(workspaceId, { action: "tool.call" }, span)) {
    for (const { seq, bytes } of entries) {
      const entry = parsedEntry(bytes);
      // A task's calls are reported with the task.
      if (entry.task !== undefined) continue;
      if (entry.phase === "intent") lost.set(seq, entry);
      else if (entry.ref !== undefined) lost.delete(entry.ref);
    }
  }
  for (const [ref, { actor = "system", agent, tool, request_id: requestId, detail }] of lost) {
    const price = typeof detail?.price === "number" ? detail.price : undefined;
    await db.tx(async (tx) => {
      const entry: EntryDraft = {
        ...{ phase: "outcome", ref, action: "tool.call", outcome: "failed", code: "unknown" },
        ...{ channel: "system", actor, agent, tool, requestId, credits: price },
      };
      const payer = { workspaceId, agent: await agentOf(tx, workspaceId, actor, agent) };
      const usage = { kind: "tool", name: tool ?? "", outcome: "unknown", durationMs: null } as const;
      await settleCall(tx, { ledger, budgets, clock }, { payer, entry, credits: price ?? 0, usage });
    });
  }
  await noteFrom(db, workspaceId, null);
}

/**
 * As `reportLostCalls`. While the ledger differs from the signed tree, the stored position stays: a later start
 * reports the calls.
 */
export async function reportLost(
  { log, ...parts }: LostCallsParts & { readonly log: Log },
  workspaceId: number,
): Promise<void> {
  try {
    await reportLostCalls(parts, workspaceId);
  } catch (error) {
    if (!(error instanceof LedgerChanged)) throw error;
    log.error("calls interrupted by the last stop are not reported, because the ledger was changed", {
      workspaceId,
      error,
    });
  }
}

/**
 * The agent that an actor's token acts as, if it is the one that the call's entry names. The name alone may belong to
 * another agent since, and the rows alone may name any agent.
 */
async function agentOf(
  tx: Tx,
  workspaceId: number,
  actor: string,
  name: string | undefined,
): Promise<{ readonly id: number; readonly name: string } | null> {
  const row = await tx.get<{ id: number; name: string }>(
    `SELECT a.id, a.name FROM tokens t JOIN agents a ON a.id = t.agent_id
     WHERE t.workspace_id = $1 AND t.id = $2 AND a.name = $3`,
    [workspaceId, tokenIdOf({ actor }), name ?? null],
  );
  return row ?? null;
}

function keyOf(workspaceId: number): string {
  return `calls_open_from:${workspaceId}`;
}

/** Records that calls may be open from this entry on. If several begin at once, the first counts. */
async function noteFirst(tx: Tx, workspaceId: number, seq: number): Promise<void> {
  await tx.run(
    `INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE
       SET value = excluded.value WHERE CAST(excluded.value AS INTEGER) < CAST(meta.value AS INTEGER)`,
    [keyOf(workspaceId), String(seq)],
  );
}

/** Null if no call is open. */
async function noteFrom(db: Db, workspaceId: number, seq: number | null): Promise<void> {
  if (seq === null) await db.run("DELETE FROM meta WHERE key = $1", [keyOf(workspaceId)]);
  else await db.run("UPDATE meta SET value = $2 WHERE key = $1", [keyOf(workspaceId), String(seq)]);
}
