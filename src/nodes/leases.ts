import type { Tx } from "../store/db.ts";

/** Work that only one node does at a time, such as posting to the webhook. */
export interface Leases {
  /**
   * Calls `begin` whenever this node gets the lease, and the function that it returned when the lease is lost. A node
   * that cannot reach the store gives its leases up before others may get them.
   * @param begin MUST NOT throw
   * @returns a function that gives the lease up
   */
  hold(name: string, begin: () => () => void): () => void;
  /** Whether this node has the lease, as far as it knows. */
  has(name: string): boolean;
  /**
   * Whether this node still has the lease, as this transaction sees it. It then keeps the lease until the transaction
   * has ended.
   */
  isHeld(tx: Tx, name: string): Promise<boolean>;
}
