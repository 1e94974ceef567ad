import type { Sql } from "../store/db.ts";
import { BLOCK, indexKey, type Span } from "./block-index.ts";
import { tiledSize } from "./tiles.ts";

/**
 * The blocks in which the stored index has entries of an action, and the last block, which is not indexed. The index is
 * not checked against the signed tree and may hide blocks. This is a quick first look at what `LedgerLists` reads
 * afterwards.
 */
export async function indexedBlocks(
  db: Pick<Sql, "all" | "get">,
  workspaceId: number,
  action: string,
): Promise<Span[]> {
  const rows = await db.all<{ block: number }>(
    "SELECT block FROM ledger_index WHERE workspace_id = $1 AND key = $2 ORDER BY block",
    [workspaceId, indexKey("action", action)],
  );
  const tail = Math.floor((await tiledSize(db, workspaceId)) / BLOCK);
  return [...rows.map(({ block }) => block), tail].map(spanOfBlock);
}

/** Counted from 0. */
export function spanOfBlock(block: number): Span {
  return { first: block * BLOCK + 1, last: (block + 1) * BLOCK, order: "asc" };
}
