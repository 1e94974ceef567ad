import type { Disturbance, ReopenReason } from "../file-store.ts";
import type { Connection } from "./connection.ts";
import type { WriteGuard, WriteRefusal } from "./group.ts";
import type { SyncThread } from "./sync-thread.ts";
import type { WatchedFile } from "./watched-file.ts";

/** The files of a store, which its connections have opened. */
export interface WatchedFiles {
  readonly database: WatchedFile;
  readonly log: WatchedFile;
  /** The index of the log, in which SQLite counts commits. */
  readonly index: WatchedFile;
}

/** Where the index has the number of commits: `iChange` in SQLite's walformat.html, section 2.2.1. */
const COMMIT_COUNT = 8;

/**
 * Notices what others do to an open database: their commits, and changes to its files. This program has only one
 * writing connection, so every commit by another one is foreign.
 *
 * Commits are counted in the log's index. A program that finds no index next to the database creates its own, and its
 * commits are not counted here. So once the index has been missing from its place next to the database, nothing may
 * be written until the next start, which checks the stored data.
 */
export class StoreWatch implements WriteGuard {
  readonly #connection: Connection;
  readonly #database: WatchedFile;
  readonly #log: WatchedFile;
  readonly #index: WatchedFile;
  readonly #syncThread: SyncThread | null;
  #version: number;
  #commits = 0;
  /** The number of commits in the index at the last look. */
  #counted: number;
  /** A transaction of this connection has failed since. */
  #hasFailed = false;
  #isForeign = false;
  /** Others may have made commits that are not counted here. */
  #isUncounted = false;
  /** A sync of the log has failed. */
  #hasLostSync = false;
  readonly #moves: Disturbance[] = [];

  /**
   * `connection`: the writer. `since`: its data version (see `look`) before the store was compared with anything;
   * later commits by others count. `syncThread`: null if the connection syncs at each commit by itself.
   */
  constructor(
    { database, log, index }: WatchedFiles,
    connection: Connection,
    { since, syncThread = null }: { readonly since: number; readonly syncThread?: SyncThread | null },
  ) {
    this.#connection = connection;
    this.#syncThread = syncThread;
    this.#version = since;
    this.#database = database;
    this.#log = log;
    this.#index = index;
    this.#counted = index.readNumber(COMMIT_COUNT);
  }

  /**
   * Refuses writes while a file is not in its place, since the next start would not find them. After a foreign
   * commit, refuses them for good: rows are compared with their seals and the ledger mostly at startup, so a changed
   * row could otherwise reach a model, and new writes would vouch for it. The same applies if a foreign commit may
   * have happened.
   */
  get refusal(): WriteRefusal | null {
    if (this.#hasLostSync) return { reason: "a sync of the log has failed", isLost: true };
    for (const file of [this.#database, this.#log, this.#index]) {
      if (file.change === null) continue;
      const reason = `the ${file.name} file is not in its place (${file.change})`;
      return { reason, isLost: this.#isUncounted || this.#database.isLost };
    }
    if (this.#isForeign) return { reason: "another program has written to the database", isLost: false };
    if (!this.#isUncounted) return null;
    return {
      reason: "another program may have written to the database while the index was not in its place",
      isLost: true,
    };
  }

  /**
   * Others may use the log with another index. Each side would overwrite the other's additions to the log, which
   * damages the file. After a failed sync, the log on disk may have gaps: the next start finds them, unless the log has been
   * written back by then.
   */
  get mustNotWrite(): boolean {
    return this.#isUncounted || this.#hasLostSync;
  }

  /** See `FileStore.mustReopen`. */
  get mustReopen(): ReopenReason | null {
    if (this.#hasLostSync) return "sync_failed";
    return (this.#isForeign || this.#isUncounted) && this.#database.change === null ? "foreign_write" : null;
  }

  /**
   * Notices commits by others, and files that are not in their place. Checking the files costs 6 µs. Checking for
   * commits costs 0.1 to 1.3 µs within a transaction of the writer (the shortest takes 12 µs without a disk), and 2
   * µs outside of one, since SQLite then takes its locks.
   *
   * `PRAGMA data_version` does not change with commits of this connection, but with each foreign commit once this
   * connection sees it. Emptying the log also changes it, for example a foreign `wal_checkpoint(TRUNCATE)`. So does a
   * write of this connection that fails once it has filled the cache, for example on a full disk: the index then has
   * no further commit.
   */
  look(): void {
    this.#lookAtFiles();
    const version = this.#dataVersion();
    // Read after the version: a commit between the two is counted, so it does not pass for a failure of our own.
    const counted = this.#index.readNumber(COMMIT_COUNT);
    const isOwnFailure = this.#hasFailed && counted === this.#counted;
    this.#counted = counted;
    this.#hasFailed = false;
    if (version === this.#version) return;
    this.#version = version;
    if (isOwnFailure) return;
    this.#commits += 1;
    this.#isForeign = true;
  }

  /**
   * After a failure, nothing more is written: Linux then regards the pages as clean, so the next sync would succeed
   * without them.
   */
  async sync(): Promise<void> {
    if (!this.#syncThread) return;
    try {
      // Without a commit since `look`, the log has not grown.
      if (this.#index.readNumber(COMMIT_COUNT) !== this.#counted) await this.#log.sync(this.#syncThread);
    } catch (error) {
      this.#hasLostSync = true;
      throw error;
    }
  }

  /** Another program cannot commit during a transaction of the writer, only after it has failed. */
  failed(): void {
    this.#hasFailed = true;
  }

  /**
   * Runs work of this program that looks like a foreign commit: emptying the log and rewriting the file may change
   * the version as well. Foreign commits before it still count, and so do those during it: SQLite then counts more
   * commits than the work made.
   *
   * @param commits the number of commits that the work makes. Work that returns false or throws has made none
   */
  own(commits: number, work: () => boolean): boolean {
    const before = this.#index.readNumber(COMMIT_COUNT);
    this.look();
    if (this.mustNotWrite) return false;
    const isDone = this.#attempt(work);
    const version = this.#dataVersion();
    const made = (this.#index.readNumber(COMMIT_COUNT) - before) >>> 0;
    if (made === (isDone ? commits : 0)) this.#version = version;
    else this.look();
    return isDone;
  }

  /** Checks the files. Returns and resets what has been noticed since the last time. */
  takeMoves(): Disturbance[] {
    this.#lookAtFiles();
    return this.#moves.splice(0);
  }

  /** Returns and resets the count of foreign commits. */
  takeCommits(): Disturbance[] {
    this.look();
    const commits = this.#commits;
    this.#commits = 0;
    return commits === 0 ? [] : [{ kind: "foreign_write", commits }];
  }

  /**
   * MUST be called after all of this process's connections to the database are closed. When a process closes any
   * descriptor of a file, it loses all its locks on that file (POSIX, fcntl), including SQLite's.
   */
  close(): void {
    this.#database.close();
    this.#log.close();
    this.#index.close();
  }

  #lookAtFiles(): void {
    for (const file of [this.#database, this.#log, this.#index]) {
      if (!file.look()) continue;
      this.#moves.push({ kind: "file_moved", file: file.name, change: file.change ?? "returned" });
    }
    // If the folder was moved, both are gone, and others then share the index there.
    if (this.#index.change !== null && this.#database.change === null) this.#isUncounted = true;
  }

  #attempt(work: () => boolean): boolean {
    try {
      return work();
    } catch (error) {
      this.failed();
      throw error;
    }
  }

  #dataVersion(): number {
    return dataVersionOf(this.#connection);
  }
}

/** A number that changes with each commit of another connection. */
export function dataVersionOf(connection: Connection): number {
  const row = connection.get<{ data_version: number }>("PRAGMA data_version");
  if (!row) throw new Error("PRAGMA data_version returned nothing");
  return row.data_version;
}
