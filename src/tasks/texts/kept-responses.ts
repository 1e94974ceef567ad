import type { ErasedPayload } from "../../ledger/proof/erasure.ts";
import type { LedgerLists } from "../../ledger/reading/lists.ts";
import { type ParsedEntry, parsedEntry } from "../../ledger/reading/parsed-entry.ts";
import type { Sql, Tx } from "../../store/db.ts";

/** A stored response to be erased. */
export interface ErasedResponse {
  readonly id: string;
  /** The response's own text, if the ledger proves that it belongs to the request. */
  readonly payloads: readonly ErasedPayload[];
}

/** The stored response to a request; null if there is none. */
export async function keptResponse(
  { db, lists }: { readonly db: Pick<Sql, "get">; readonly lists: Pick<LedgerLists, "entry"> },
  workspaceId: number,
  request: ParsedEntry & { readonly seq: number },
): Promise<ErasedResponse | null> {
  if (request.action !== "model.call") return null;
  const row = await db.get<{ id: string; outcome_seq: number }>(
    "SELECT id, outcome_seq FROM responses WHERE workspace_id = $1 AND request_seq = $2",
    [workspaceId, request.seq],
  );
  if (!row) return null;
  const { id, outcome_seq: seq } = row;
  const stored = await lists.entry(workspaceId, seq);
  const outcome = stored ? parsedEntry(stored.bytes) : {};
  const isOwn =
    outcome.action === "model.call" &&
    outcome.request_id === request.request_id &&
    outcome.output_hash !== undefined;
  return { id, payloads: isOwn ? [{ seq, kind: "output" }] : [] };
}

/** Makes the response impossible to find. Its texts are left to the caller. */
export async function forgetResponse(tx: Tx, workspaceId: number, id: string): Promise<void> {
  const key = [workspaceId, id];
  await tx.run("DELETE FROM response_items WHERE workspace_id = $1 AND response_id = $2", key);
  await tx.run("DELETE FROM responses WHERE workspace_id = $1 AND id = $2", key);
}

/** Like `forgetResponse`, for all responses whose request is in an entry up to `last`. */
export async function forgetResponsesUpTo(tx: Tx, workspaceId: number, last: number): Promise<void> {
  const span = [workspaceId, last];
  await tx.run(
    `DELETE FROM response_items WHERE workspace_id = $1 AND response_id IN
       (SELECT id FROM responses WHERE workspace_id = $1 AND request_seq <= $2)`,
    span,
  );
  await tx.run("DELETE FROM responses WHERE workspace_id = $1 AND request_seq <= $2", span);
}
