import type { Tx } from "../../store/db.ts";

/** Keeps the states of spaces as they are while they are being relied on. */
export interface SpaceLocks {
  /** Whether other processes may change spaces. */
  readonly areShared: boolean;
  /** Waits for all documents being shown. MUST come first in a transaction that changes spaces. */
  toChange(tx: Tx): void;
  /** Keeps spaces from being changed until the transaction has ended. */
  toRead(tx: Tx): void;
  /** Tells other nodes that the spaces have changed. */
  changed(): void;
}

/** The only process of a store remembers the spaces. */
export const ownSpaces: SpaceLocks = { areShared: false, toChange() {}, toRead() {}, changed() {} };
