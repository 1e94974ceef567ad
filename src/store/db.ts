/**
 * The store as everything above it sees it: asynchronous, in SQL that SQLite and PostgreSQL both speak (`$1` parameters,
 * `RETURNING`, `ON CONFLICT`), times as integers of milliseconds, JSON as text. What cannot be common is SQLite's alone: the
 * vault's tables of vectors (`vault/rows/spaces.ts`), its index in the workers, and the search for quotes
 * (`tasks/quoted.ts`).
 */
export type SqlValue = string | number | null | Uint8Array;

export interface Sql {
  /** All rows. The caller names the row's shape and MUST select exactly its columns. */
  all<Row>(sql: string, params?: readonly SqlValue[]): Promise<Row[]>;
  get<Row>(sql: string, params?: readonly SqlValue[]): Promise<Row | undefined>;
  /** Runs one writing statement and answers how many rows it changed. */
  run(sql: string, params?: readonly SqlValue[]): Promise<number>;
}

export interface Tx extends Sql {
  /** Called when what this transaction wrote does not last, so that memory kept beside the store can follow. */
  onRollback(undo: () => void): void;
  /** Called once what this transaction wrote is on disk, before its `tx` resolves. */
  onCommit(done: () => void): void;
}

export interface TxOptions {
  /**
   * The work runs one writing statement at most, and nothing else of it can fail after that: it needs no savepoint of its
   * own within the group.
   */
  readonly single?: boolean;
}

export interface Db extends Sql {
  /**
   * Runs `work` and resolves once what it wrote is on disk (synced). Transactions that arrive while another group is
   * being written are committed together with one sync; each still succeeds or fails alone.
   *
   * `work` MUST await nothing but its own `tx`: every other writer waits for it.
   *
   * @throws StoreUnavailable when the store cannot be written (disk full, read-only, I/O error); nothing lasts then.
   * @throws whatever `work` throws, after its writes are undone.
   */
  tx<T>(work: (tx: Tx) => Promise<T>, options?: TxOptions): Promise<T>;
  /**
   * Takes what was deleted or overwritten so far out of every file of the store, the log included.
   * @returns false where somebody reads all the time, and it has to be asked for again.
   */
  forget(): Promise<boolean>;
  /**
   * Writes the whole store anew, where it has `most` bytes or less: nobody else is served meanwhile, some 4 ms a megabyte.
   * `forget` overwrites rows; where the engine had moved a row before, a copy of it may be left in a part of a page that is
   * not used any more, and goes with this alone.
   * @returns false where the store is larger, or somebody else has it for seconds
   */
  rewrite(most: number): Promise<boolean>;
  close(): Promise<void>;
}

/** The store cannot be written now. What was asked for did not happen. */
export class StoreUnavailable extends Error {
  override readonly name = "StoreUnavailable";

  constructor(message: string, cause?: unknown) {
    super(message, { cause });
  }
}
