import type { Sql } from "../../store/db.ts";
import { inclusionRanges } from "../proof/ranges.ts";
import { type EntryFilter, findEntry } from "../query.ts";
import { TreeReader } from "../tiles.ts";
import type { BundleEdges, EntryProof } from "./format/manifest.ts";
import type { Snapshot } from "./snapshot.ts";

/** The entries just outside of a period, with the proofs that they are in the snapshot's tree. */
export async function readEdges(
  db: Pick<Sql, "all" | "get">,
  workspaceId: number,
  { from, to }: Pick<EntryFilter, "from" | "to">,
  { size, first, last }: Snapshot,
): Promise<BundleEdges> {
  const before = from === undefined ? undefined : await proofOf(first - 1);
  const after = to === undefined ? undefined : await proofOf(last + 1);
  return { ...(before && { before }), ...(after && { after }) };

  /** Undefined beyond the ledger's ends, and of an entry that was removed: who checks the bundle finds the proof missing. */
  async function proofOf(seq: number): Promise<EntryProof | undefined> {
    if (seq < 1 || seq > size) return undefined;
    const found = await findEntry(db, workspaceId, seq);
    if (!found) return undefined;
    const inclusion = await new TreeReader(db, workspaceId).hashesOf(inclusionRanges(seq - 1, size));
    return { entry: found.bytes, inclusion: inclusion.map((hash) => hash.toBase64()) };
  }
}
