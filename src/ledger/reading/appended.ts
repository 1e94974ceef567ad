import type { Sql } from "../../store/db.ts";
import { leafHash } from "../entry.ts";
import type { TreeHead } from "../proof/check.ts";
import { isEqual } from "../proof/hash.ts";
import type { GrowingTree } from "../proof/tree.ts";
import { ENTRIES_BETWEEN, type StoredEntry } from "./query.ts";

/** The entries that lead from one tree to a later one. */
export interface Appended {
  readonly entries: readonly StoredEntry[];
  /** The later tree. */
  readonly tree: GrowingTree;
}

/**
 * Reads only the entries that were appended to a tree that was checked before.
 * @returns undefined if they do not lead to the signed root; `EvidenceReader` then finds out what was changed
 */
export async function appendedSince(
  sql: Pick<Sql, "all">,
  workspaceId: number,
  before: GrowingTree,
  signed: TreeHead,
): Promise<Appended | undefined> {
  const entries = await sql.all<StoredEntry>(ENTRIES_BETWEEN, [workspaceId, before.size, signed.size]);
  const tree = before.copy();
  for (const { seq, leaf, bytes } of entries) {
    const hash = leafHash(bytes);
    if (seq !== tree.size + 1 || !isEqual(leaf, hash)) return undefined;
    tree.append(hash);
  }
  if (tree.size !== signed.size || !isEqual(tree.root(), signed.root)) return undefined;
  return { entries, tree };
}
