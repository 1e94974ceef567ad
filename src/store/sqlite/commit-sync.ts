import type { Connection } from "./connection.ts";
import { type CommitDisk, isEngineError } from "./group.ts";
import type { WatchedFiles } from "./watch.ts";

/** Where the log's index has the number of frames in the log: `mxFrame` in SQLite's walformat.html, section 2.2.1. */
const FRAME_COUNT = 16;
/** Pages in the log after which it is copied into the database, as by SQLite itself. */
const LONG_LOG = 1_000;

/**
 * Syncs commits in another thread. SQLite's own sync would block the event loop: 0.2 ms at each commit on a fast
 * disk, and 10 ms whenever it copies the log into the database.
 */
export class CommitSync implements CommitDisk {
  readonly #files: WatchedFiles;
  readonly #writer: Connection;
  readonly #reader: Connection;
  /** The length at which the log is copied next. It grows while a long read keeps the log from starting over. */
  #copyAt = LONG_LOG;

  /** @param writer MUST NOT be used by anyone else while a promise of this object is pending */
  constructor(files: WatchedFiles, writer: Connection, reader: Connection) {
    this.#files = files;
    this.#writer = writer;
    this.#reader = reader;
    // A process that was killed may have copied its log into the database without waiting for the disk.
    files.database.syncNow();
    writer.leaveSyncing();
  }

  /**
   * A transaction of the reader sees the database as it was when the transaction first read. If reads waited instead,
   * all that had come in the meantime would run in one turn of the event loop.
   */
  holdReads(): void {
    this.#reader.run("BEGIN");
    this.#reader.get("SELECT rowid FROM sqlite_schema LIMIT 1");
  }

  releaseReads(): void {
    if (this.#reader.database.inTransaction) this.#reader.run("COMMIT");
  }

  sync(): Promise<void> {
    return this.#files.log.sync();
  }

  async shortenLog(): Promise<void> {
    const frames = this.#files.index.readNumber(FRAME_COUNT);
    if (frames < LONG_LOG) this.#copyAt = LONG_LOG;
    if (frames < this.#copyAt) return;
    this.#copyAt = frames + LONG_LOG;
    try {
      this.#writer.copyLog();
    } catch (error) {
      // On a full disk, the log keeps what it has.
      if (!isEngineError(error)) throw error;
    }
    await this.#files.database.sync();
  }
}
