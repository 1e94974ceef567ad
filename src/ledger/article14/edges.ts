import { inclusionRanges } from "../proof/ranges.ts";
import type { EntryFilter } from "../reading/query.ts";
import { TreeReader } from "../tiles.ts";
import type { Source } from "./evidence-files.ts";
import type { BundleEdges, EntryProof } from "./format/manifest.ts";

/** The entries just outside a period, with proofs that they are in the snapshot's tree. */
export async function readEdges(
  { db, workspaceId, evidence, snapshot }: Pick<Source, "db" | "workspaceId" | "evidence" | "snapshot">,
  { from, to }: Pick<EntryFilter, "from" | "to">,
): Promise<BundleEdges> {
  const { size, first, last } = snapshot;
  const before = from === undefined ? undefined : await proofOf(first - 1);
  const after = to === undefined ? undefined : await proofOf(last + 1);
  return { ...(before && { before }), ...(after && { after }) };

  /** Undefined beyond the ledger's ends. */
  async function proofOf(seq: number): Promise<EntryProof | undefined> {
    const found = await evidence.entry(seq);
    if (!found) return undefined;
    const inclusion = await new TreeReader(db, workspaceId).hashesOf(inclusionRanges(seq - 1, size));
    return { entry: found.bytes, inclusion: inclusion.map((hash) => hash.toBase64()) };
  }
}
