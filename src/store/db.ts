import type { RowSeals } from "./seals/seals.ts";

/**
 * The store's interface: asynchronous, in SQL that SQLite and PostgreSQL share (`$1` parameters, `RETURNING`, `ON
 * CONFLICT`), with times as integer milliseconds and JSON as text. Specific to SQLite are only the vault's vector tables
 * (`vault/rows/vec0.ts`) and its index in the workers.
 */
export type SqlValue = string | number | null | Uint8Array;

export interface Sql {
  /** Checks that rows carrying authority are unchanged since this server wrote them. */
  readonly seals: RowSeals;
  /** Returns all rows. The caller names the row's shape and MUST select exactly its columns. */
  all<Row>(sql: string, params?: readonly SqlValue[]): Promise<Row[]>;
  /** Long rows take turns with other work, by the workspace, which MUST be the first parameter if there is one. */
  get<Row>(sql: string, params?: readonly SqlValue[]): Promise<Row | undefined>;
  /** Runs one writing statement and returns the number of rows it changed. */
  run(sql: string, params?: readonly SqlValue[]): Promise<number>;
}

/**
 * The ledgers that a transaction appends to, or whose heads it changes in another way: those of one workspace or of
 * several, or null for none.
 */
export type Ledgers = number | readonly number[] | null;

/** What a row of `ledger_tails` says about the end of a ledger. The ledger alone knows what it means. */
export interface LedgerTail {
  readonly head: string;
  readonly edge: Uint8Array;
}

export interface Tx extends Sql {
  /** The workspaces whose ledgers it may append to. `Ledger.begin` adds a new one. */
  readonly ledgers: number[];
  /**
   * The tails of those ledgers, by workspace, as they were when this transaction locked them. Empty in SQLite, whose
   * only process knows them.
   */
  readonly lockedTails: ReadonlyMap<number, LedgerTail>;
  /**
   * Runs one writing statement whose count nobody needs. Statements keep their order, but nobody waits for this one. If
   * it fails, the transaction fails with its error, whatever `work` does: later statements throw it too.
   */
  write(sql: string, params?: readonly SqlValue[]): void;
  /** Called if this transaction's writes are rolled back, so state kept in memory can follow. */
  onRollback(undo: () => void): void;
  /**
   * Called once this transaction's writes are on disk, before its `tx` resolves. What it throws is an uncaught exception,
   * as with `onRollback`: the transaction has ended all the same.
   */
  onCommit(done: () => void): void;
  /**
   * What the transactions of one commit write together. The first one that asks for it creates it, and it is written
   * once all of them are done, before the commit, so many transactions can share one statement.
   */
  shared<Work extends CommitWork>(kind: new () => Work): Work;
}

/** See `Tx.shared`. */
export interface CommitWork {
  /** If this throws, the whole commit is rolled back. MUST await nothing but `tx`. */
  write(tx: Tx): Promise<void>;
}

export interface TxOptions {
  /**
   * The workspace whose turn it is, if the transaction does not append to its ledger. Workspaces take turns if many
   * transactions wait. Default: the one whose ledger is named, and otherwise the node's own turn.
   */
  readonly turnOf?: number;
  /**
   * The work runs at most one writing statement and cannot fail after it, so it needs no savepoint within the group.
   */
  readonly single?: boolean;
  /**
   * Written even while the store refuses writes because of a disturbance, as long as some name still leads to its
   * file. Used to record that very disturbance.
   */
  readonly whileRefused?: boolean;
}

export interface Db extends Sql {
  /**
   * Reads that wait for no turn, and only briefly for a commit. Only for single rows: of rights, and of whatever a stop
   * or a cancel needs, which must not wait behind the calls that it is to stop.
   */
  readonly urgent: Sql;
  /**
   * Runs `work` and resolves once its writes are on disk (synced). Transactions that arrive while a group is being
   * written are committed together, with one sync. Each still succeeds or fails by itself.
   *
   * `work` MUST await nothing but its own `tx`: every other writer waits for it. It may run more than once: PostgreSQL
   * undoes it and starts again after a deadlock or a lost connection. So what it changes in memory MUST be undone by
   * `onRollback`, done by `onCommit`, or come out the same when it is done again.
   *
   * @param ledgers `work` MUST append to no others. PostgreSQL locks their tails before anything else, in ascending
   *   order, so the transactions of a workspace take turns and none waits for another in a circle. In SQLite, which
   *   runs one transaction at a time, they only decide whose turn it is.
   * @throws StoreUnavailable if the store cannot be written (disk full, read-only, I/O error), or refuses it because
   *   of a disturbance. In that case nothing is kept, unless the error is `OutcomeUnknown`.
   * @throws whatever `work` throws, after its writes are rolled back.
   */
  tx<T>(ledgers: Ledgers, work: (tx: Tx) => Promise<T>, options?: TxOptions): Promise<T>;
  /**
   * Runs `work` at the end of each group of transactions, before the group's commit, so its writes succeed or fail
   * with the group. If `work` throws, the whole group is rolled back. Its `onCommit` runs before those of the group.
   * Only one `work` can be registered. It MUST be quick and MUST await nothing but its own `tx`.
   */
  beforeCommit(work: (tx: Tx) => Promise<void>): void;
  /**
   * Runs `work` in each transaction that has locked tails of ledgers, before anything else in it. Only one `work` can be
   * registered. It MUST await nothing but its own `tx`. Never called in SQLite, which has no such locks.
   */
  afterLock(work: (tx: Tx) => Promise<void> | undefined): void;
  close(): Promise<void>;
}

/** The store cannot be written or read now. The request was not carried out, unless it is `OutcomeUnknown`. */
export class StoreUnavailable extends Error {
  override readonly name = "StoreUnavailable";

  constructor(message: string, cause?: unknown) {
    super(message, { cause });
  }
}

/** The store failed during a commit. Whether the transaction is kept is unknown until the store works again. */
export class OutcomeUnknown extends StoreUnavailable {}
