import type { BrokenSeal } from "./seals.ts";

/** Rows that were sealed as they were found, kept as `meta.seals` until the ledgers record them. */
export interface SealingNote {
  readonly rows: number;
  /** Number of rows that the operator accepted although their seals did not match. */
  readonly accepted: number;
  /** The first of them. Empty if no seal matched, as after the loss of the key. */
  readonly named: readonly BrokenSeal[];
}
