import type { Manifest } from "../../article14/format/manifest.ts";
import { counted, type VerificationReport } from "../report.ts";

/** Facts about what was checked and what a bundle cannot show. For `covered`, see `Anchors`. */
export function bundleFacts(
  { range, counts, filters, tree, ...manifest }: Manifest,
  found: { readonly included: number; readonly decisions: number; readonly erasures: number },
  key: string,
  covered: number,
  report: VerificationReport,
): void {
  const { person, role, actor } = manifest.created_by;
  const by = person === undefined ? actor : `${person}${role === undefined ? "" : `, ${role}`} (${actor})`;
  report.fact("Ledger", `${manifest.origin} (workspace ${manifest.workspace})`);
  report.fact(
    "Exported",
    `${manifest.created_at} by ${by}, with ${manifest.program.name} ${manifest.program.version}`,
  );
  report.fact("Period", `${range.from ?? "the beginning"} to ${range.to ?? manifest.created_at}`);
  report.fact(
    "Entries",
    counts.total === 0
      ? "none in this period"
      : `${counted(range.first)} to ${counted(range.last)}: ${counted(found.included)} of ${counted(counts.total)} are present and match their hashes`,
  );
  const filter = Object.entries(filters).map(([field, value]) => `${field} is ${String(value)}`);
  report.fact(
    "Withheld",
    counts.withheld === 0
      ? "nothing"
      : `${counted(counts.withheld)} entries, by the filter (${filter.join(", ")}); each can be requested and checked against its hash in leaves.txt`,
  );
  report.fact("Decisions by people", counted(found.decisions));
  report.fact(
    "Erasures",
    found.erasures === 0 ? "no text of these entries was erased" : `${counted(found.erasures)} records`,
  );
  report.fact("Tree", `${counted(tree.size)} entries, root ${tree.root}`);
  report.fact("Key", key);
  report.fact(
    "Not checked",
    `the wording of report.html; entries after the export${counts.withheld === 0 ? "" : "; whether the withheld entries really do not match the filter, for which only the exporting server's signature vouches"}${uncovered(tree.size, covered)}`,
  );
}

function uncovered(size: number, covered: number): string {
  if (covered >= size && size > 0) return "";
  return covered === 0
    ? "; whether someone with the key has rewritten the ledger, which only a checkpoint kept elsewhere can show"
    : `; whether someone with the key has rewritten the entries after entry ${counted(covered)}, which only a newer checkpoint kept elsewhere can show`;
}
