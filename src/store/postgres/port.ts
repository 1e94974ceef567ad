import type * as today from "../db.ts";

/** The store's interface as this engine implements it: a transaction names the workspaces to whose ledgers it appends. */
export interface Db extends Omit<today.Db, "tx"> {
  /**
   * Like `Db.tx` of `../db.ts`. `work` may run more than once, so it MUST NOT change anything but the store, except in
   * `onCommit` and `onRollback`.
   *
   * @param workspaces the workspaces to whose ledgers the work appends; null if it appends to none
   */
  tx<T>(
    workspaces: number | readonly number[] | null,
    work: (tx: today.Tx) => Promise<T>,
    options?: today.TxOptions,
  ): Promise<T>;
}
