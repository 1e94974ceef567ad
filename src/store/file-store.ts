/**
 * What happened to a file of the store, according to its path: it has another name, another file has its name, it has
 * no name any more, or the path cannot be checked.
 */
export type FileChange = "moved" | "replaced" | "deleted" | "unreachable";

/**
 * `log`: the newest commits, which are not in the database file yet. `index`: the log's index, in which commits are
 * counted.
 */
export type StoreFile = "database" | "log" | "index";

/** Something that another process did to the store. */
export type Disturbance =
  /** `commits`: commits by others, at least this many (several between two checks count as one). */
  | { readonly kind: "foreign_write"; readonly commits: number }
  /** `returned`: the file is back in its place. */
  | {
      readonly kind: "file_moved";
      readonly file: StoreFile;
      readonly change: FileChange | "returned";
    };

/**
 * `foreign_write`: another program has written to the store, or may have. `sync_failed`: a commit is in the log, but may
 * not survive a power failure.
 */
export type ReopenReason = "foreign_write" | "sync_failed";

/**
 * What only a store in files on this machine has: other programs can open the files, and deleted data stays in them until it
 * is overwritten.
 */
export interface FileStore {
  /**
   * Removes deleted and overwritten data from every file of the store, including the log.
   * @returns false if readers never paused long enough; call it again later
   */
  forget(): Promise<boolean>;
  /** Whether the last process ended without closing the store. Data that it deleted may still be in the files. */
  readonly wasLeftOpen: boolean;
  /**
   * Rewrites the whole store if it has at most `most` bytes. The process serves nothing else during a rewrite: about
   * 4 ms per megabyte. `forget` overwrites deleted rows, but if SQLite had moved a row before, a copy can remain in
   * unused parts of a page. Only a rewrite removes it.
   * @returns false if the store is larger, or another process holds the file for seconds
   */
  rewrite(most: number): Promise<boolean>;
  /**
   * Checks whether others have written to the store or moved, replaced or deleted its files, and returns what is new
   * since the last check. While a file is out of place, all writes are refused with `StoreUnavailable`, since the
   * next start would not find them. After a foreign commit, or once the index has been missing from its place next to
   * the database, all writes are refused until the store is opened again, since what is stored is compared only at
   * startup; each transaction checks for both before it writes. If the store cannot be read now, foreign commits are
   * reported by a later check.
   */
  disturbances(): Promise<readonly Disturbance[]>;
  /**
   * Why writes are refused until the store is opened again, or null. Null also while the database is not in its place,
   * where a start would look for it.
   */
  readonly mustReopen: ReopenReason | null;
}

/** For a store that a database server keeps: nobody moves its files, and what is deleted is left to the server. */
export const NO_FILES: FileStore = {
  forget: async () => true,
  wasLeftOpen: false,
  rewrite: async () => true,
  disturbances: async () => [],
  mustReopen: null,
};
