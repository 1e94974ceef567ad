import { type FileHandle, open } from "node:fs/promises";
import type { Log } from "../../base/log.ts";

/**
 * Maximum number of notes queued while the file cannot be written. Past that the oldest are dropped, since each later
 * one covers the same entries.
 */
const WAITING_LIMIT = 4_096;

/**
 * The file outside the database to which checkpoints are appended, preferably on write-once storage. If the whole
 * ledger is rewritten, only copies kept elsewhere show it. Written and synced in the background; after a failure,
 * writing is retried with the next checkpoint.
 */
export class CheckpointFile {
  readonly #path: string;
  readonly #log: Log;
  #waiting: readonly string[] = [];
  #writing: Promise<void> | null = null;
  #handle: FileHandle | null = null;
  #isFailing = false;
  #isTorn = false;

  constructor(path: string, log: Log) {
    this.#path = path;
    this.#log = log;
  }

  /** An empty line follows each note. */
  append(notes: readonly string[]): void {
    this.#waiting = [...this.#waiting, ...notes].slice(-WAITING_LIMIT);
    this.#writing ??= this.#write();
  }

  /** Resolves once everything that can be written is written. */
  async close(): Promise<void> {
    while (this.#writing) await this.#writing;
    if (this.#waiting.length > 0) await this.#write();
    if (this.#waiting.length > 0) {
      this.#log.error("some checkpoints could not be written to their file", {
        file: this.#path,
        missing: this.#waiting.length,
      });
    }
    await this.#handle?.close();
    this.#handle = null;
  }

  async #write(): Promise<void> {
    const log = this.#log;
    const path = this.#path;
    let notes: readonly string[] = [];
    try {
      while (this.#waiting.length > 0) {
        // Reopened after each failure, since another disk may have been mounted in its place.
        this.#handle ??= await this.#open();
        notes = this.#waiting;
        this.#waiting = [];
        const text = notes.map((note) => `${note}\n`).join("");
        await this.#handle.appendFile(this.#isTorn ? `\n\n${text}` : text);
        this.#isTorn = false;
        await this.#handle.datasync();
        notes = [];
      }
      if (this.#isFailing) log.info("checkpoints are written to their file again", { file: path });
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) log.error("checkpoints cannot be written to their file", { file: path, error });
      this.#isFailing = true;
      // The file may contain part of the notes. Empty lines separate that part from later notes.
      this.#isTorn ||= notes.length > 0;
      this.#waiting = [...notes, ...this.#waiting].slice(-WAITING_LIMIT);
      await this.#handle?.close().catch(() => {});
      this.#handle = null;
    } finally {
      // Runs in the same turn in which the queue was found empty, so later notes start a new write.
      this.#writing = null;
    }
  }

  /** A process that was killed while it wrote may have left part of a note at the end of the file. */
  async #open(): Promise<FileHandle> {
    const handle = await open(this.#path, "a+", 0o640);
    const found = await handle.stat();
    if (found.isFile() && found.size > 0) {
      const last = Buffer.alloc(2);
      await handle.read(last, 0, 2, Math.max(0, found.size - 2));
      this.#isTorn ||= last.toString("latin1") !== "\n\n";
    }
    return handle;
  }
}
