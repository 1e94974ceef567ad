import { readEntryFields } from "../../article14/format/entry.ts";
import type { EntryProof, Manifest } from "../../article14/format/manifest.ts";
import { rootOfInclusion } from "../../proof/check.ts";
import type { TreeHash } from "../../proof/hash.ts";
import type { VerificationReport } from "../report.ts";
import { hashesOf } from "./trust.ts";

/**
 * Checks that the range covers the whole period: the entries just outside it are in the same tree and outside the
 * period. Since the ledger's times never go back, no entry further away can be in the period.
 */
export function checkEdges(manifest: Manifest, hash: TreeHash, report: VerificationReport): void {
  const { range, edges, tree, created_at } = manifest;
  const { from, to, first, last } = range;
  if (from !== undefined && first > 1) check(first - 1, edges.before, "before", (ts) => ts < from);
  if (to !== undefined && last < tree.size) {
    check(last + 1, edges.after, "after", (ts) => ts >= to && ts <= created_at);
  }

  function check(
    seq: number,
    proof: EntryProof | undefined,
    side: string,
    isOutside: (ts: string) => boolean,
  ): void {
    if (!proof) {
      const what = `The manifest lacks entry ${seq}, just ${side} the range: nothing shows that the period ends there.`;
      report.tampered("edge_missing", what, seq);
      return;
    }
    const fields = readEntryFields(proof.entry);
    const leaf = hash.leaf(new TextEncoder().encode(proof.entry));
    const root = rootOfInclusion(hash, leaf, seq - 1, tree.size, hashesOf(proof.inclusion));
    if (root?.toHex() !== tree.root || fields?.seq !== seq) {
      const what = `The manifest's entry ${seq}, just ${side} the range, is not that entry of the ledger.`;
      report.tampered("edge_not_proven", what, seq);
    } else if (!isOutside(fields.ts)) {
      const what = `Entry ${seq}, just ${side} the range, was written at ${fields.ts}, so the range does not cover the whole period that the manifest names.`;
      report.tampered("edge_inside_period", what, seq);
    }
  }
}
