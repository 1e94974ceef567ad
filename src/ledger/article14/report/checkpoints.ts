import { LedgerChanged } from "../../ledger-changed.ts";
import { parseSignedCheckpoint } from "../../proof/checkpoint.ts";
import { isEqual } from "../../proof/hash.ts";
import { NoteError, parseVerifierKey, signersOf } from "../../proof/note.ts";
import { rootAt } from "../../reading/proofs.ts";
import { TreeReader } from "../../tiles.ts";
import { sha256 } from "../../tree-hash.ts";
import { tools } from "../../verify/tools.ts";
import type { Source } from "../evidence-files.ts";
import { readEntryFields } from "../format/entry.ts";
import type { SignedTree } from "../snapshot.ts";

/** A checkpoint that the gateway signed on schedule and stored. */
export interface StoredCheckpoint {
  readonly size: number;
  /** RFC 3339 time of the last entry it covers; null for the empty tree. */
  readonly at: string | null;
}

const SHOWN = 8;

/**
 * The latest stored checkpoints that cover entries of the range or later ones, newest first. Only those with a valid
 * signature and the entries' root are returned. The time in a row proves nothing and is not used.
 */
export async function readCheckpoints(
  { db, workspaceId, evidence, snapshot }: Pick<Source, "db" | "workspaceId" | "evidence" | "snapshot">,
  { keys }: Pick<SignedTree, "keys">,
): Promise<readonly StoredCheckpoint[]> {
  const rows = await db.all<{ size: number; note: string }>(
    `SELECT size, note FROM ledger_checkpoints WHERE workspace_id = $1 AND size >= $2 AND size <= $3
     ORDER BY size DESC LIMIT ${SHOWN}`,
    [workspaceId, snapshot.first, snapshot.size],
  );
  const known = [keys.current, ...keys.former].map((key) => parseVerifierKey(sha256, key));
  const good: StoredCheckpoint[] = [];
  for (const { size, note } of rows) {
    if (!(await isGood(size, note))) continue;
    const last = await evidence.entry(size);
    good.push({ size, at: (last && readEntryFields(last.bytes)?.ts) ?? null });
  }
  return good;

  async function isGood(size: number, text: string): Promise<boolean> {
    try {
      const { checkpoint, note } = parseSignedCheckpoint(text);
      const signers = await signersOf(note, known, tools.verifySignature);
      const { root } = await rootAt(new TreeReader(db, workspaceId), snapshot, size);
      return signers.length > 0 && checkpoint.size === size && isEqual(checkpoint.root, root);
    } catch (error) {
      if (error instanceof NoteError || error instanceof LedgerChanged) return false;
      throw error;
    }
  }
}
