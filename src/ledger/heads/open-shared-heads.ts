import type { LedgerTail } from "../../store/db.ts";
import { ledgerSize } from "../reading/query.ts";
import { ledgerChanged, type NamedWorkspace } from "../stored-end.ts";
import type { HeadStore, LedgerEnd, OpenHeads, OpenHeadsParts } from "./heads.ts";
import { SharedHeads } from "./shared-heads.ts";
import { endOfTail, TailChanged } from "./stored-tail.ts";
import { verifiedEnd } from "./verified-end.ts";

/** Ledgers verified at the same time at a start. */
const AT_ONCE = 8;

/** For a store that several nodes share. */
export const sharedHeadStore: HeadStore = {
  open: openSharedHeads,
  async isSigned(sql) {
    return (await sql.get("SELECT 1 FROM ledger_tails WHERE head IS NOT NULL LIMIT 1")) !== undefined;
  },
};

/**
 * Verifies the end of each ledger while its tail is locked, because other nodes may append to it. A ledger's first
 * commit signs its head, so none ever has entries without one.
 */
async function openSharedHeads(parts: OpenHeadsParts): Promise<OpenHeads> {
  const { db, keys, nameOf } = parts;
  const heads = new SharedHeads({ db, keys, nameOf });
  const left = [...parts.workspaces()];
  const verifyLeft = async () => {
    for (let workspace = left.pop(); workspace; workspace = left.pop()) await verify(parts, heads, workspace);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, verifyLeft));
  return { heads, unsigned: [], state: "signed" };
}

/** @throws OperatorError */
async function verify(
  { db, keys, nameOf }: OpenHeadsParts,
  heads: SharedHeads,
  workspace: NamedWorkspace,
): Promise<void> {
  await db.tx(workspace.id, async (tx) => {
    const row = tx.lockedTails.get(workspace.id);
    if (row) {
      const { tree, checkpoints } = signedEnd({ keys, nameOf }, workspace, row);
      await verifiedEnd(tx, workspace, { size: tree.size, root: tree.root(), checkpoints });
      return;
    }
    // The first workspace is created before its ledger.
    if (keys.use !== "none" || (await ledgerSize(tx, workspace.id)) > 0) {
      throw ledgerChanged(workspace, "has no signed head: it was removed, or the workspace was added");
    }
    await heads.begin(tx, workspace.id);
  });
}

/** @throws OperatorError */
function signedEnd(
  parts: Pick<OpenHeadsParts, "keys" | "nameOf">,
  workspace: NamedWorkspace,
  row: LedgerTail,
): LedgerEnd {
  try {
    return endOfTail(parts, workspace.id, row);
  } catch (error) {
    if (!(error instanceof TailChanged)) throw error;
    throw ledgerChanged(workspace, error.message);
  }
}
