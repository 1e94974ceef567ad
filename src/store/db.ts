import type { RowSeals } from "./seals/seals.ts";

/**
 * The store as everything above it sees it: asynchronous, in SQL that SQLite and PostgreSQL both speak (`$1` parameters,
 * `RETURNING`, `ON CONFLICT`), times as integers of milliseconds, JSON as text. What cannot be common is SQLite's alone: the
 * vault's tables of vectors (`vault/rows/spaces.ts`), its index in the workers, and the search for quotes
 * (`tasks/quoted.ts`).
 */
export type SqlValue = string | number | null | Uint8Array;

export interface Sql {
  /** Tells whether rows that carry authority are as this server has written them. */
  readonly seals: RowSeals;
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
  /**
   * It is written even where the store's file is not in its place any more, as long as it has a name somewhere: for the
   * evidence of just that.
   */
  readonly displaced?: boolean;
}

/**
 * What has become of a file of the store, as seen by its path: it has another name now, another file is there instead, it
 * has no name any more, or nobody can look.
 */
export type FileChange = "moved" | "replaced" | "deleted" | "unreachable";

/** What others did to the store behind this program's back. */
export type Disturbance =
  /** `commits`: how often something had been committed by others when this program looked; at least so many times. */
  | { readonly kind: "foreign_write"; readonly commits: number }
  /** `log`: what was committed last, and is not in the database's own file yet. `returned`: it is in its place again. */
  | {
      readonly kind: "file_moved";
      readonly file: "database" | "log";
      readonly change: FileChange | "returned";
    };

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
   * Runs `work` at the end of each group of transactions, before the group is committed: what it writes lasts with all of
   * them or not at all. When `work` throws, the group is lost. Its `onCommit` comes before those of the group. One `work` at
   * most, which MUST be quick, and await nothing but its own `tx`.
   */
  beforeCommit(work: (tx: Tx) => Promise<void>): void;
  /**
   * Takes what was deleted or overwritten so far out of every file of the store, the log included.
   * @returns false where somebody reads all the time, and it has to be asked for again.
   */
  forget(): Promise<boolean>;
  /** Whether the process that had the store last did not close it: what it had deleted may be in its files still. */
  readonly wasLeftOpen: boolean;

  /**
   * Writes the whole store anew, where it has `most` bytes or less: nobody else is served meanwhile, some 4 ms a megabyte.
   * `forget` overwrites rows; where the engine had moved a row before, a copy of it may be left in a part of a page that is
   * not used any more, and goes with this alone.
   * @returns false where the store is larger, or somebody else has it for seconds
   */
  rewrite(most: number): Promise<boolean>;
  /**
   * Looks whether others have written to the store, moved, replaced or deleted its file, and answers what is new since the
   * last look. While the file is not in its place, everything that would be written is refused with `StoreUnavailable`:
   * the next start would not find it. Where the store cannot be read now, what others have written is seen at a later look.
   */
  disturbances(): Promise<readonly Disturbance[]>;
  close(): Promise<void>;
}

/** The store cannot be written now. What was asked for did not happen. */
export class StoreUnavailable extends Error {
  override readonly name = "StoreUnavailable";

  constructor(message: string, cause?: unknown) {
    super(message, { cause });
  }
}
