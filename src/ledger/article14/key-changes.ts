import { consistencyRanges, inclusionRanges } from "../proof/ranges.ts";
import { entryTest } from "../reading/entry-filter.ts";
import type { StoredEntry } from "../reading/query.ts";
import { TreeReader } from "../tiles.ts";
import type { Source } from "./evidence-files.ts";
import type { KeyChangeProof } from "./format/manifest.ts";

/** Maximum number of key changes that one bundle proves: the latest. A key is changed about once a year. */
const MOST = 50;
const isRotation = entryTest({ action: "ledger.rotate_key" });

/** Changes of the signing key. They lead an auditor who trusts an earlier key to the current one. */
export class RotationList {
  #entries: StoredEntry[] = [];

  /** MUST be called with each entry of the snapshot, in order. */
  add(entry: StoredEntry): void {
    if (!isRotation(entry)) return;
    this.#entries.push(entry);
    if (this.#entries.length > MOST) this.#entries.shift();
  }

  async proofs(source: Pick<Source, "db" | "workspaceId" | "snapshot">): Promise<KeyChangeProof[]> {
    const proofs: KeyChangeProof[] = [];
    for (const entry of this.#entries) {
      const proof = await proofOf(source, entry);
      if (proof) proofs.push(proof);
    }
    return proofs;
  }
}

/** Undefined if no checkpoint ends with the entry: a lost key cannot sign for the next one. */
async function proofOf(
  { db, workspaceId, snapshot: { size } }: Pick<Source, "db" | "workspaceId" | "snapshot">,
  { seq, bytes: entry }: StoredEntry,
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
