import { OperatorError } from "../base/errors.ts";
import { type Db, type Sql, StoreUnavailable } from "../store/db.ts";
import { readTail } from "./chain.ts";
import { leafHash } from "./entry.ts";
import { emptyLedger, type LedgerEnd } from "./heads/heads.ts";
import { isEqual } from "./proof/hash.ts";
import { type CheckpointSeries, extendSeries, NO_CHECKPOINTS } from "./proof/head.ts";
import { nodesOf } from "./proof/ranges.ts";
import { GrowingTree } from "./proof/tree.ts";
import { ledgerSize } from "./reading/query.ts";
import { TILE_WIDTH, TreeReader } from "./tiles.ts";
import { sha256, TREE } from "./tree-hash.ts";

export interface NamedWorkspace {
  readonly id: number;
  readonly name: string;
}

export const VERIFY_HINT =
  "keep a copy of this data directory, find out what was changed (gatehouse ledger verify --data DIR)";

/** The end of a ledger that predates signed heads. */
export async function unsignedEnd(db: Db, workspaceId: number): Promise<LedgerEnd> {
  let checkpoints: CheckpointSeries = NO_CHECKPOINTS;
  for (let after = -1; ; ) {
    const rows = await db.all<{ size: number; note: string }>(
      "SELECT size, note FROM ledger_checkpoints WHERE workspace_id = $1 AND size > $2 ORDER BY size LIMIT 1024",
      [workspaceId, after],
    );
    for (const { note } of rows) checkpoints = extendSeries(sha256, checkpoints, note);
    const last = rows.at(-1);
    if (!last) return endOf(db, { id: workspaceId, name: String(workspaceId) }, checkpoints);
    after = last.size;
  }
}

/** The end of a ledger according to the tiles and the entries after the last tile. @throws OperatorError */
export async function endOf(
  sql: Pick<Sql, "all" | "get">,
  workspace: NamedWorkspace,
  checkpoints: CheckpointSeries,
): Promise<LedgerEnd> {
  const size = await ledgerSize(sql, workspace.id);
  if (size === 0) return { ...emptyLedger(), checkpoints };
  try {
    const range = { start: 0, end: size };
    const subtrees = await new TreeReader(sql, workspace.id).subtreesOf(range);
    const tree = new GrowingTree(TREE);
    for (const [index, { level }] of nodesOf(range).entries())
      tree.append(subtrees[index] ?? TREE.empty(), level);
    await checkLastBlock(sql, workspace, size);
    return { tail: await readTail(sql, workspace.id), tree, checkpoints };
  } catch (error) {
    if (error instanceof StoreUnavailable || error instanceof OperatorError) throw error;
    throw ledgerChanged(
      workspace,
      `cannot be read (${error instanceof Error ? error.message : String(error)})`,
    );
  }
}

/**
 * Checks the entries after the last tile, and always the last entry, because it determines the earliest time of the
 * next one.
 */
async function checkLastBlock(sql: Pick<Sql, "all">, workspace: NamedWorkspace, size: number): Promise<void> {
  const first = Math.floor((size - 1) / TILE_WIDTH) * TILE_WIDTH + 1;
  const after = size % TILE_WIDTH === 0 ? size - 1 : first - 1;
  const rows = await sql.all<{ seq: number; leaf: Uint8Array; bytes: string }>(
    "SELECT seq, leaf, bytes FROM ledger WHERE workspace_id = $1 AND seq > $2 ORDER BY seq",
    [workspace.id, after],
  );
  for (const { seq, leaf, bytes } of rows) {
    if (!isEqual(leaf, leafHash(bytes)))
      throw ledgerChanged(workspace, `has an entry ${seq} that is not the one that was signed`);
  }
}

/** The error for a ledger that does not end with what was signed. */
export function ledgerChanged({ name }: NamedWorkspace, what: string): OperatorError {
  return new OperatorError(
    `the ledger of workspace ${JSON.stringify(name)} ${what}`,
    `${VERIFY_HINT}, and restore a backup`,
  );
}
