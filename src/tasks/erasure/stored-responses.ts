import { Problem } from "../../base/errors.ts";
import type { Signal } from "../../base/signal.ts";
import type { LedgerHistories } from "../../gate/ledger-histories.ts";
import type { ErasedPayload } from "../../ledger/proof/erasure.ts";
import type { LedgerLists } from "../../ledger/reading/lists.ts";
import { type ParsedEntry, parsedEntry } from "../../ledger/reading/parsed-entry.ts";
import type { Sql, Tx } from "../../store/db.ts";
import type { ErasedResponses } from "../signals.ts";

/** A stored response to be erased. */
export interface ErasedResponse {
  readonly id: string;
  /** The texts of all attempts, which the ledger proves to belong to the request. */
  readonly payloads: readonly ErasedPayload[];
}

/**
 * The stored response to a request, or null.
 * @throws Problem 409 `task_unfinished` if it is in progress
 */
export async function storedResponseTo(
  {
    db,
    lists,
    histories,
  }: {
    readonly db: Pick<Sql, "get">;
    readonly lists: Pick<LedgerLists, "read" | "size">;
    readonly histories: Pick<LedgerHistories, "of">;
  },
  workspaceId: number,
  request: ParsedEntry & { readonly seq: number },
): Promise<ErasedResponse | null> {
  if (request.action !== "model.call" && request.action !== "response.dispatch") return null;
  const row = await db.get<{ id: string; outcome_seq: number }>(
    "SELECT id, outcome_seq FROM responses INDEXED BY responses_request WHERE workspace_id = $1 AND request_seq = $2",
    [workspaceId, request.seq],
  );
  if (!row) return null;
  const { id, outcome_seq: outcomeSeq } = row;
  // Not by the row: if someone changed it, the response could never be erased.
  if (histories.of(workspaceId).openResponses.has(request.seq)) {
    throw new Problem("task_unfinished", `The response ${id} has not ended. Cancel it first.`);
  }
  const last = outcomeSeq > 0 ? outcomeSeq : await lists.size(workspaceId);
  return { id, payloads: await answersTo(lists, workspaceId, request, last) };
}

/** The texts of all attempts at a request, up to the entry `last`. */
async function answersTo(
  lists: Pick<LedgerLists, "read">,
  workspaceId: number,
  request: ParsedEntry & { readonly seq: number },
  last: number,
): Promise<readonly ErasedPayload[]> {
  const payloads: ErasedPayload[] = [];
  const span = { first: request.seq + 1, last, order: "asc" } as const;
  for (const action of new Set(["model.call", request.action])) {
    for await (const entries of lists.read(workspaceId, { action }, span)) {
      for (const { seq, bytes } of entries) {
        const { request_id: id, output_hash: output } = parsedEntry(bytes);
        if (id === request.request_id && output !== undefined) payloads.push({ seq, kind: "output" });
      }
    }
  }
  return payloads;
}

/** Notified of the responses whose texts were erased, so that no open stream sends them. */
export type TellErased = Pick<Signal<ErasedResponses>, "emit">;

/** Makes the response impossible to find. Its texts are left to the caller. */
export async function forgetResponse(
  tx: Tx,
  workspaceId: number,
  id: string,
  erased: TellErased,
): Promise<void> {
  const key = [workspaceId, id];
  await tx.run("DELETE FROM response_items WHERE workspace_id = $1 AND response_id = $2", key);
  await tx.run("DELETE FROM response_events WHERE workspace_id = $1 AND response_id = $2", key);
  await tx.run("DELETE FROM responses WHERE workspace_id = $1 AND id = $2", key);
  tx.onCommit(() => erased.emit({ workspaceId, ids: [id] }));
}

/** Like `forgetResponse`, for all responses whose request is in an entry up to `upTo`. */
export async function forgetResponsesUpTo(
  tx: Tx,
  workspaceId: number,
  upTo: number,
  erased: TellErased,
): Promise<void> {
  const span = [workspaceId, upTo];
  for (const table of ["response_items", "response_events"]) {
    await tx.run(
      `DELETE FROM ${table} WHERE workspace_id = $1 AND response_id IN
         (SELECT id FROM responses WHERE workspace_id = $1 AND request_seq <= $2)`,
      span,
    );
  }
  await tx.run("DELETE FROM responses WHERE workspace_id = $1 AND request_seq <= $2", span);
  tx.onCommit(() => erased.emit({ workspaceId, upTo }));
}

/** Erases the stored events of responses whose request or answer is in one of these entries. */
export async function eraseResponseEvents(
  tx: Tx,
  workspaceId: number,
  seqs: readonly number[],
  erased: TellErased,
): Promise<void> {
  const ids = new Set<string>();
  for (const seq of seqs) {
    for (const column of ["request", "outcome"]) {
      // Without the index, each would read all responses of the workspace.
      const rows = await tx.all<{ id: string }>(
        `SELECT id FROM responses INDEXED BY responses_${column} WHERE workspace_id = $1 AND ${column}_seq = $2`,
        [workspaceId, seq],
      );
      for (const { id } of rows) ids.add(id);
    }
  }
  for (const id of ids)
    await tx.run("DELETE FROM response_events WHERE workspace_id = $1 AND response_id = $2", [
      workspaceId,
      id,
    ]);
  tx.onCommit(() => erased.emit({ workspaceId, ids: [...ids] }));
}

/**
 * The seq of the request of the oldest unfinished background response; infinite if there is none. The rows are not
 * used: anyone who changed one could prevent all erasure.
 */
export function firstOpenResponse(histories: Pick<LedgerHistories, "of">, workspaceId: number): number {
  let first = Number.POSITIVE_INFINITY;
  for (const seq of histories.of(workspaceId).openResponses) first = Math.min(first, seq);
  return first;
}
