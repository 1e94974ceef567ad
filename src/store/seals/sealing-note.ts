import type { BrokenSeal } from "./seals.ts";

/** What was sealed as it was found, kept as `meta.seals` until the ledgers record it. */
export interface SealingNote {
  readonly rows: number;
  /** Number of rows that the operator accepted although their seals did not match. */
  readonly accepted: number;
  /** The first of them. Empty if no seal matched, as after the loss of the key. */
  readonly named: readonly BrokenSeal[];
}
