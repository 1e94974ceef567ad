import type { Sql } from "../store/db.ts";
import { BLOCK, indexKey } from "./block-index.ts";
import type { StoredEntry } from "./query.ts";
import { tiledSize } from "./tiles.ts";

/**
 * The entries of an action according to the stored index, one block at a time, oldest first. Neither the index nor
 * the rows are checked against the signed tree. This is a quick first look at what `LedgerLists` reads afterwards.
 */
export async function* indexedEntries(
  db: Pick<Sql, "all" | "get">,
  workspaceId: number,
  action: string,
): AsyncGenerator<readonly StoredEntry[], void> {
  const rows = await db.all<{ block: number }>(
    "SELECT block FROM ledger_index WHERE workspace_id = $1 AND key = $2 ORDER BY block",
    [workspaceId, indexKey("action", action)],
  );
  // Entries after the last complete block are not indexed.
  const tail = Math.floor((await tiledSize(db, workspaceId)) / BLOCK);
  const text = `"action":${JSON.stringify(action)}`;
  for (const block of [...rows.map((row) => row.block), tail]) {
    const entries = await db.all<StoredEntry>(
      "SELECT seq, leaf, bytes FROM ledger WHERE workspace_id = $1 AND seq > $2 AND seq <= $3 ORDER BY seq",
      [workspaceId, block * BLOCK, (block + 1) * BLOCK],
    );
    yield entries.filter(({ bytes }) => bytes.includes(text));
  }
}
