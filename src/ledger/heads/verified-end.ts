import type { Sql } from "../../store/db.ts";
import { isEqual } from "../proof/hash.ts";
import type { CheckpointSeries } from "../proof/head.ts";
import { ledgerSize } from "../reading/query.ts";
import { endOf, ledgerChanged, type NamedWorkspace } from "../stored-end.ts";
import type { LedgerEnd } from "./heads.ts";

/** The signed part of a ledger's end. */
export interface SignedEnd {
  readonly size: number;
  readonly root: Uint8Array;
  readonly checkpoints: CheckpointSeries;
}

/**
 * Compares what is stored of a ledger with its signed end.
 * @throws OperatorError if they differ
 */
export async function verifiedEnd(
  sql: Pick<Sql, "all" | "get">,
  workspace: NamedWorkspace,
  { size, root, checkpoints }: SignedEnd,
): Promise<LedgerEnd> {
  const stored = await ledgerSize(sql, workspace.id);
  if (stored > size) {
    const entries =
      stored === size + 1
        ? `entry ${stored} was`
        : Number.isSafeInteger(stored)
          ? `entries ${size + 1} to ${stored} were`
          : `entries after entry ${size} were`;
    throw ledgerChanged(workspace, `ends with an unsigned tail: ${entries} added without the ledger's key`);
  }
  if (stored < size) throw ledgerChanged(workspace, `has ${stored} entries, but ${size} were signed`);
  const end = await endOf(sql, workspace, checkpoints);
  if (!isEqual(end.tree.root(), root)) {
    throw ledgerChanged(workspace, `was changed: its ${size} entries are not those that were signed`);
  }
  await checkCheckpoints(sql, workspace, checkpoints);
  return end;
}

/**
 * Checks that no checkpoint is missing. Detecting a replaced one requires reading them all, as `ledger verify` does.
 */
async function checkCheckpoints(
  sql: Pick<Sql, "get">,
  workspace: NamedWorkspace,
  { count }: CheckpointSeries,
): Promise<void> {
  const row = await sql.get<{ stored: number }>(
    "SELECT COUNT(*) AS stored FROM ledger_checkpoints WHERE workspace_id = $1",
    [workspace.id],
  );
  const stored = row?.stored ?? 0;
  if (stored === count) return;
  const what = stored < count ? "checkpoints were removed" : "checkpoints were added";
  throw ledgerChanged(workspace, `has ${stored} checkpoints, but ${count} were signed: ${what}`);
}
