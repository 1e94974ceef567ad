import type * as today from "../db.ts";

/**
 * The store's interface as this engine implements it. It differs from `../db.ts` in two ways: a transaction names the
 * workspaces to whose ledgers it appends, and it may send writes without waiting for their results.
 */
export interface Tx extends today.Tx {
  /**
   * Runs a writing statement whose count nobody needs. Statements keep their order. If one fails, the transaction
   * fails.
   */
  write(sql: string, params?: readonly today.SqlValue[]): void;
}

export interface Db extends Omit<today.Db, "tx"> {
  /**
   * Like `Db.tx` of `../db.ts`. `work` may run more than once, so it MUST NOT change anything but the store, except in
   * `onCommit` and `onRollback`.
   *
   * @param workspaces the workspaces to whose ledgers the work appends; null if it appends to none
   */
  tx<T>(
    workspaces: number | readonly number[] | null,
    work: (tx: Tx) => Promise<T>,
    options?: today.TxOptions,
  ): Promise<T>;
}
