import type { Tx } from "../../store/db.ts";
import type { LedgerHistories } from "../ledger-histories.ts";

/** Which process makes a call outside of tasks, from its intent to its outcome. */
export interface CallOwners {
  /**
   * The intents of a workspace's calls whose process has died.
   * @throws LedgerChanged
   */
  lost(workspaceId: number): Promise<readonly number[]>;
  /** Whether this node is the one to report a lost call, in the transaction that does so. */
  takeLost(tx: Tx, workspaceId: number, seq: number): Promise<boolean>;
  /** Whether any node's calls may be lost, without looking at each workspace. */
  mayHaveLost(): Promise<boolean>;
}

/** The only process of its store has just started: all calls are of earlier ones. */
export function localCallOwners(histories: Pick<LedgerHistories, "of">): CallOwners {
  return {
    lost: async (workspaceId) => [...histories.of(workspaceId).openCalls],
    takeLost: async () => true,
    mayHaveLost: async () => false,
  };
}
