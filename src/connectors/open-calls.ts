import type { Draft } from "../ledger/entry.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Db, Tx } from "../store/db.ts";

/** Notes, with its intent, that a call is out. */
export async function openCall(tx: Tx, workspaceId: number, intentSeq: number, entry: Draft): Promise<void> {
  await tx.run("INSERT INTO open_calls (workspace_id, intent_seq, entry) VALUES ($1, $2, $3)", [
    workspaceId,
    intentSeq,
    JSON.stringify(entry),
  ]);
}

export async function closeCall(tx: Tx, workspaceId: number, intentSeq: number): Promise<void> {
  await tx.run("DELETE FROM open_calls WHERE workspace_id = $1 AND intent_seq = $2", [
    workspaceId,
    intentSeq,
  ]);
}

/**
 * Reports the calls that were out when an earlier process died: whether they were done is not known, and none is made
 * again. Called once, at the start.
 */
export async function reportLostCalls(db: Db, ledger: Ledger, workspaceId: number): Promise<void> {
  const lost = await db.all<{ intent_seq: number; entry: string }>(
    "SELECT intent_seq, entry FROM open_calls WHERE workspace_id = $1 ORDER BY intent_seq",
    [workspaceId],
  );
  for (const { intent_seq: ref, entry } of lost) {
    await db.tx(async (tx) => {
      const draft = JSON.parse(entry) as Draft;
      await ledger.append(tx, workspaceId, {
        ...draft,
        phase: "outcome",
        ref,
        outcome: "failed",
        code: "unknown",
        channel: "system",
      });
      await closeCall(tx, workspaceId, ref);
    });
  }
}
