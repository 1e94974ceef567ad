import { type FileHandle, open } from "node:fs/promises";
import type { Log } from "../base/log.ts";

/** Notes that wait for a file that can't be written. Past that the oldest go: each later one vouches for what they did. */
const WAITING_LIMIT = 4_096;

/**
 * The file outside of the database that checkpoints are appended to, best on a disk that cannot be rewritten: against an
 * edit that makes the whole ledger anew only what is kept elsewhere helps. Written and synced in the background; where
 * that fails, it is tried again with the next checkpoint.
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

  /** Each note is followed by an empty line. */
  append(notes: readonly string[]): void {
    this.#waiting = [...this.#waiting, ...notes].slice(-WAITING_LIMIT);
    this.#writing ??= this.#write();
  }

  /** Resolves when all is written that can be. */
  async close(): Promise<void> {
    while (this.#writing) await this.#writing;
    if (this.#waiting.length > 0) await this.#write();
    if (this.#waiting.length > 0) {
      this.#log.error("checkpoints are not in their file", {
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
        // Opened anew each time that it failed: another disk may have been put in its place.
        this.#handle ??= await open(path, "a", 0o640);
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
      // Part of them may stand there: empty lines keep it apart from what follows.
      this.#isTorn ||= notes.length > 0;
      this.#waiting = [...notes, ...this.#waiting].slice(-WAITING_LIMIT);
      await this.#handle?.close().catch(() => {});
      this.#handle = null;
    } finally {
      // In the same turn in which nothing waited any more: what comes after it begins anew.
      this.#writing = null;
    }
  }
}
