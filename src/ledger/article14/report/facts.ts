import type { CappedList } from "../figures/capped.ts";
import type { Figures } from "../figures/figures.ts";
import type { Overseers } from "../figures/overseers.ts";
import type { ErasureLine } from "../format/erasures.ts";
import type { Manifest } from "../format/manifest.ts";
import type { StoredCheckpoint } from "./checkpoints.ts";

/** All that a report is made of. */
export interface ReportFacts {
  readonly about: Omit<Manifest, "files">;
  readonly figures: Figures;
  readonly erasures: CappedList<ErasureLine>;
  readonly overseers: Overseers;
  readonly checkpoints: readonly StoredCheckpoint[];
  /** The time of the ledger's first entry. */
  readonly oldestEntry: string | null;
}

/** Where something was not found: a filter may have left it out. */
export function place({ about }: ReportFacts): string {
  return about.counts.withheld > 0 ? "among the included entries" : "in this period";
}
