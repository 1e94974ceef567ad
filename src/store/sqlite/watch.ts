import { closeSync, fstatSync, openSync, statSync } from "node:fs";
import { resolve } from "node:path";
import type { Disturbance, FileChange } from "../db.ts";
import type { Connection } from "./connection.ts";
import type { WriteGuard, WriteRefusal } from "./group.ts";

/**
 * Notices what others do to an open database: their commits, and changes to its files. This program has only one
 * writing connection, so every commit by another one is foreign.
 */
export class StoreWatch implements WriteGuard {
  readonly #connection: Connection;
  readonly #database: WatchedFile;
  readonly #log: WatchedFile;
  #version: number;
  #commits = 0;
  #isForeign = false;

  /**
   * `connection`: the writer, whose log has already been opened. `since`: its data version (see `look`) before the
   * store was compared with anything; commits of others since then count.
   */
  constructor(path: string, connection: Connection, since: number = dataVersionOf(connection)) {
    this.#connection = connection;
    this.#version = since;
    this.#database = new WatchedFile(path, "database");
    this.#log = new WatchedFile(`${path}-wal`, "log");
  }

  /**
   * Refuses writes while a file is not in its place, since the next start would not find them. After a foreign commit,
   * refuses them for good: rows are compared with their seals and the ledger mostly at a start, so a changed row could
   * otherwise reach a model, and what is written now would vouch for it.
   */
  get refusal(): WriteRefusal | null {
    for (const file of [this.#database, this.#log]) {
      if (file.change === null) continue;
      const reason = `the ${file.name} file is not in its place (${file.change})`;
      return { reason, isLost: this.#database.isLost };
    }
    if (!this.#isForeign) return null;
    return { reason: "another program has written to the database", isLost: false };
  }

  /**
   * Notices commits by others. Costs 0.1 to 1.3 µs within a transaction of the writer (the shortest takes 12 µs
   * without a disk), and 2 µs outside of one, since SQLite then takes its locks.
   *
   * `PRAGMA data_version` does not change with commits of this connection, but with each foreign commit once this
   * connection sees it. It stays the same if a write of this connection fails, such as on a full disk. Emptying the
   * log counts too, such as by a foreign `wal_checkpoint(TRUNCATE)`.
   */
  look(): void {
    const version = this.#dataVersion();
    if (version === this.#version) return;
    this.#version = version;
    this.#commits += 1;
    this.#isForeign = true;
  }

  /**
   * Runs work of this program that looks like a foreign commit: emptying the log and rewriting the file may change
   * the version as well. Foreign commits before it still count, and so do those during work that answers false: it
   * did not have the file to itself.
   */
  own(work: () => boolean): boolean {
    this.look();
    const isDone = work();
    if (isDone) this.#version = this.#dataVersion();
    else this.look();
    return isDone;
  }

  /** Checks the files, in about 5 µs. */
  lookAtFiles(): Disturbance[] {
    const found: Disturbance[] = [];
    for (const file of [this.#database, this.#log]) {
      if (!file.look()) continue;
      found.push({ kind: "file_moved", file: file.name, change: file.change ?? "returned" });
    }
    return found;
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

/** A file identified by its device and inode, and by a descriptor that stays open. */
class WatchedFile {
  readonly name: "database" | "log";
  readonly #path: string;
  readonly #descriptor: number;
  /** Some file systems report different numbers for an open file and for its path. Nothing can be detected there. */
  readonly #isKnowable: boolean;
  /** What the last check found. Null: it is in its place. */
  change: FileChange | null = null;

  constructor(path: string, name: WatchedFile["name"]) {
    this.name = name;
    this.#path = resolve(path);
    this.#descriptor = openSync(this.#path, "r");
    this.#isKnowable = this.#changeNow() === null;
  }

  /** No name leads to the file any more: what is written to it is lost when this process ends. */
  get isLost(): boolean {
    return fstatSync(this.#descriptor).nlink === 0;
  }

  /** Whether the state differs from the last check. */
  look(): boolean {
    const before = this.change;
    if (this.#isKnowable) this.change = this.#changeNow();
    return this.change !== before;
  }

  close(): void {
    closeSync(this.#descriptor);
  }

  #changeNow(): FileChange | null {
    let found: { readonly dev: bigint; readonly ino: bigint } | undefined;
    try {
      found = statSync(this.#path, { bigint: true, throwIfNoEntry: false });
    } catch (error) {
      // ENOTDIR: a folder above is a file now, so there is no file. Any other error would also prevent the next start
      // from finding it.
      if (!isCode(error, "ENOTDIR")) return "unreachable";
    }
    const open = fstatSync(this.#descriptor, { bigint: true });
    if (found?.ino === open.ino && found.dev === open.dev) return null;
    if (found) return "replaced";
    return open.nlink === 0n ? "deleted" : "moved";
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
