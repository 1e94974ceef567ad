import type { Connection } from "./connection.ts";
import { type CommitDisk, isEngineError } from "./group.ts";
import type { WatchedFiles } from "./watch.ts";

/** Where the log's index has the number of frames in the log: `mxFrame` in SQLite's walformat.html, section 2.2.1. */
const FRAME_COUNT = 16;
/** Pages in the log after which it is copied into the database, as by SQLite itself. */
const LONG_LOG = 1_000;
/** The log's length is read once per this many groups, since reading it takes 1 µs. */
const GROUPS = 16;

/**
 * Syncs commits in another thread. SQLite's own sync would block the event loop: 0.2 ms at each commit on a fast
 * disk, and 10 ms whenever it copies the log into the database.
 */
export class CommitSync implements CommitDisk {
  readonly #files: WatchedFiles;
  readonly #connection: Connection;
  #groups = 0;
  /** The length at which the log is copied next. It grows while a long read keeps the log from starting over. */
  #copyAt = LONG_LOG;

  /** `connection`: the writer. It MUST NOT be used by anyone else while a promise of this object is pending. */
  constructor(files: WatchedFiles, connection: Connection) {
    this.#files = files;
    this.#connection = connection;
    // A process that was killed may have copied its log into the database without waiting for the disk.
    files.database.syncNow();
    connection.leaveSyncing();
  }

  sync(): Promise<void> {
    return this.#files.log.sync();
  }

  async shortenLog(): Promise<void> {
    this.#groups += 1;
    if (this.#groups % GROUPS !== 0) return;
    const frames = this.#files.index.readNumber(FRAME_COUNT);
    if (frames < LONG_LOG) this.#copyAt = LONG_LOG;
    if (frames < this.#copyAt) return;
    this.#copyAt = frames + LONG_LOG;
    try {
      this.#connection.copyLog();
    } catch (error) {
      // On a full disk, the log keeps what it has.
      if (!isEngineError(error)) throw error;
    }
    await this.#files.database.sync();
  }
}
