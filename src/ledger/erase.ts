import type { Db, Sql, Tx } from "../store/db.ts";
import type { Detail, EntryDraft } from "./entry.ts";
import type { Admit, Ledger } from "./ledger.ts";
import { type ErasedPayload, NAMED_AT_ONCE, namesOf } from "./proof/erasure.ts";

/** Why payloads were erased, for the record: an erasure request in an entry, or the deletion of a document. */
export type ErasureCause =
  | { readonly reason: "requested"; readonly target_seq: number }
  | { readonly reason: "document_deleted"; readonly document: string };

/** The `detail` of the entry that names the payloads its transaction erased. `parseErasure` reads it. */
export function erasureDetail(erased: readonly ErasedPayload[], cause: ErasureCause): Detail {
  return { payloads: namesOf(erased), ...cause };
}

/**
 * Deletes texts and salts. MUST run in one transaction with an entry that names the payloads returned, at most
 * `NAMED_AT_ONCE`.
 * @returns the payloads that existed; others may have been erased before
 */
export async function deletePayloads(
  tx: Tx,
  workspaceId: number,
  payloads: readonly ErasedPayload[],
): Promise<ErasedPayload[]> {
  const erased: ErasedPayload[] = [];
  for (const { seq, kind } of payloads) {
    const sql = "DELETE FROM payloads WHERE workspace_id = $1 AND seq = $2 AND kind = $3";
    if ((await tx.run(sql, [workspaceId, seq, kind])) > 0) erased.push({ seq, kind });
  }
  return erased;
}

/**
 * Erases payloads in order, a few per transaction, with an entry that names them. No entry is written if nothing was
 * left to erase.
 * @param draft The entries without `detail`
 * @param admit Called in each transaction
 * @throws whatever `admit` throws; nothing more is erased then
 */
export async function erasePayloads(
  { db, ledger }: { readonly db: Db; readonly ledger: Ledger },
  workspaceId: number,
  payloads: readonly ErasedPayload[],
  draft: EntryDraft,
  cause: ErasureCause,
  admit?: Admit,
): Promise<void> {
  for (let at = 0; at < payloads.length; at += NAMED_AT_ONCE) {
    await db.tx(workspaceId, async (tx) => {
      await admit?.(tx);
      const erased = await deletePayloads(tx, workspaceId, payloads.slice(at, at + NAMED_AT_ONCE));
      if (erased.length === 0) return;
      await ledger.append(tx, workspaceId, { ...draft, detail: erasureDetail(erased, cause) });
    });
  }
}

/** Maximum number of payloads in one slice, and the most text in it: about 2 ms to scan or delete. */
const ROWS = 64;
const SLICE_BYTES = 1_000_000;

/** The last seq of the next slice of payloads after `after`, up to `last`; null if there are no more. */
export async function endOfSlice(
  db: Pick<Sql, "all">,
  workspaceId: number,
  after: number,
  last: number,
): Promise<number | null> {
  const rows = await db.all<{ seq: number; bytes: number }>(
    `SELECT seq, octet_length(body) AS bytes FROM payloads
     WHERE workspace_id = $1 AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT $4`,
    [workspaceId, after, last, ROWS],
  );
  let end: number | null = null;
  let sum = 0;
  for (const { seq, bytes } of rows) {
    sum += bytes;
    if (end !== null && sum > SLICE_BYTES) break;
    end = seq;
  }
  return end;
}
