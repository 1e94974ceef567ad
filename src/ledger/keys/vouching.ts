import type { Sql } from "../../store/db.ts";
import { NoteError, parseNote } from "../proof/note.ts";
import { isSignedBy } from "../verify/tools.ts";

/** Newest first: a rotation that a node has to learn of is recent. */
const NOTES =
  "SELECT size, note FROM ledger_checkpoints WHERE workspace_id = $1 AND size < $2 ORDER BY size DESC LIMIT 256";

/**
 * Looks for the checkpoints of rotations, each signed by a key and its successor.
 * @param keys public keys, in the order in which they were in force
 * @returns the first key that no such checkpoint vouches for; undefined if there is none
 */
export async function firstUnproven(
  sql: Pick<Sql, "all">,
  workspaceId: number,
  keys: readonly Uint8Array[],
): Promise<Uint8Array | undefined> {
  const unproven = new Set(keys.slice(1));
  for (let before = Number.MAX_SAFE_INTEGER; unproven.size > 0; ) {
    const rows = await sql.all<{ size: number; note: string }>(NOTES, [workspaceId, before]);
    for (const { note } of rows) {
      for (const [at, key] of keys.entries()) {
        const former = keys[at - 1];
        if (former && unproven.has(key) && areSignersOf(note, [former, key])) unproven.delete(key);
      }
    }
    const last = rows.at(-1);
    if (!last) break;
    before = last.size;
  }
  return [...unproven][0];
}

function areSignersOf(text: string, keys: readonly Uint8Array[]): boolean {
  try {
    const { text: signed, signatures } = parseNote(text);
    // Only a rotation signs a checkpoint twice.
    if (signatures.length < keys.length) return false;
    const message = Buffer.from(signed);
    return keys.every((key) => signatures.some(({ signature }) => isSignedBy(key, message, signature)));
  } catch (error) {
    if (error instanceof NoteError) return false;
    throw error;
  }
}
