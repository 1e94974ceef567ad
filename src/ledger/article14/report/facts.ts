import type { CappedList } from "../figures/capped.ts";
import type { ReportFigures } from "../figures/figures.ts";
import type { Overseers } from "../figures/overseers.ts";
import type { ErasureLine } from "../format/erasures.ts";
import type { Manifest } from "../format/manifest.ts";
import type { StoredCheckpoint } from "./checkpoints.ts";

/** Everything that a report is computed from. */
export interface ReportFacts {
  readonly about: Omit<Manifest, "files">;
  readonly figures: ReportFigures;
  readonly erasures: CappedList<ErasureLine>;
  readonly overseers: Overseers;
  readonly checkpoints: readonly StoredCheckpoint[];
  /** Time of the ledger's first entry. */
  readonly oldestEntry: string | null;
}

/** Where something was not found. A filter may have excluded it. */
export function place({ about }: ReportFacts): string {
  return about.counts.withheld > 0 ? "among the included entries" : "in this period";
}
