import type { Sql } from "../../store/db.ts";
import { consistencyRanges, inclusionRanges } from "../proof/ranges.ts";
import { readEntries, type StoredEntry } from "../query.ts";
import { TreeReader } from "../tiles.ts";
import type { KeyChangeProof } from "./format/manifest.ts";

/** Changes of the key that one bundle proves: the last ones. Somebody changes it once a year. */
const MOST = 50;

/** The changes of the signing key among the first `size` entries: who trusts a former key gets to the present one by them. */
export async function readKeyChanges(
  db: Pick<Sql, "all" | "get">,
  workspaceId: number,
  size: number,
): Promise<KeyChangeProof[]> {
  const entries: StoredEntry[] = [];
  const span = { first: 1, last: size, order: "desc" } as const;
  for await (const page of readEntries(db, workspaceId, { action: "ledger.rotate_key" }, span)) {
    entries.push(...page);
    if (entries.length >= MOST) break;
  }
  const proofs: KeyChangeProof[] = [];
  for (const { seq, bytes } of entries.slice(0, MOST).reverse()) {
    const proof = await proofOf(db, workspaceId, seq, bytes, size);
    if (proof) proofs.push(proof);
  }
  return proofs;
}

/** Undefined where no checkpoint ends with the entry: a key that was lost signed nothing for the next one. */
async function proofOf(
  db: Pick<Sql, "all" | "get">,
  workspaceId: number,
  seq: number,
  entry: string,
  size: number,
): Promise<KeyChangeProof | undefined> {
  const stored = await db.get<{ note: string }>(
    "SELECT note FROM ledger_checkpoints WHERE workspace_id = $1 AND size = $2",
    [workspaceId, seq],
  );
  if (!stored) return undefined;
  const tree = new TreeReader(db, workspaceId);
  const base64 = (hashes: readonly Uint8Array[]) => hashes.map((hash) => hash.toBase64());
  return {
    checkpoint: stored.note,
    entry,
    inclusion: base64(await tree.hashesOf(inclusionRanges(seq - 1, seq))),
    consistency: base64(await tree.hashesOf(consistencyRanges(seq, size))),
  };
}
