import type { Sql } from "../store/db.ts";
import { BLOCK, indexKey, type Span } from "./block-index.ts";
import { tiledSize } from "./tiles.ts";

/**
 * The blocks in which the stored index has entries of an action, and the last one, which no index has. The index is not held
 * against the signed tree, and may hide blocks: a quick first look, for what `LedgerLists` goes through afterwards.
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
