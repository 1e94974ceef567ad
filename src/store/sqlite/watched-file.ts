import { closeSync, constants, fstatSync, openSync, readSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { OperatorError } from "../../base/errors.ts";
import { listOpenFiles } from "../../base/open-files/count.ts";
import type { FileChange, StoreFile } from "../file-store.ts";
import type { SyncThread } from "./sync-thread.ts";

/**
 * For writing too, as SQLite opens it: on an overlay file system, the first open for writing creates another file.
 */
const FLAGS = constants.O_RDWR | constants.O_CREAT;
const TRIES = 3;

/**
 * A file identified by its device and inode, and by a descriptor that stays open. It is created if it does not exist.
 *
 * The database MUST be watched before SQLite opens it, and its log and the log's index once the writer has opened them.
 */
export class WatchedFile {
  readonly name: StoreFile;
  readonly #path: string;
  #descriptor: number;
  /** The device and inode of the descriptor. */
  #opened: { readonly dev: bigint; readonly ino: bigint } | null = null;
  /**
   * Some file systems report different numbers for an open file and for its path. Changes cannot be detected there.
   */
  readonly #isKnowable: boolean;
  /** The result of the last check. Null if the file is in its place. */
  change: FileChange | null = null;

  /** @throws OperatorError if the file cannot be opened */
  constructor(path: string, name: StoreFile) {
    this.name = name;
    this.#path = resolve(path);
    this.#descriptor = open(this.#path);
    // A file that is replaced at this moment must not be mistaken for such a file system.
    for (let attempt = 1; attempt < TRIES && this.#changeNow() !== null; attempt++) {
      closeSync(this.#descriptor);
      this.#descriptor = open(this.#path);
      this.#opened = null;
    }
    this.#isKnowable = this.#changeNow() === null;
  }

  /** Whether no name leads to the file any more, so that anything written to it is lost when this process ends. */
  get isLost(): boolean {
    return fstatSync(this.#descriptor).nlink === 0;
  }

  /** Whether the state differs from the last check. */
  look(): boolean {
    const before = this.change;
    if (this.#isKnowable) this.change = this.#changeNow();
    return this.change !== before;
  }

  /**
   * Requires that this many connections of this process have exactly this file open, and that it is in its place.
   * SQLite opens files by their path, which may lead to another file for a moment. So the descriptors are compared,
   * not the file that the path leads to afterwards.
   *
   * @throws OperatorError
   */
  requireOpenIn(connections: number): void {
    if (!this.#isKnowable) return;
    const isInPlace = this.#changeNow() === null;
    // Plus one: the descriptor of this watch.
    if (isInPlace && this.#descriptorCount() > connections) return;
    throw new OperatorError(
      `the ${this.name} file ${this.#path} was replaced while it was being opened`,
      "find the program that moves files in the data directory and stop it; check which file is the right one, and start again",
    );
  }

  /** A number of 32 bits at a position, in this machine's byte order. */
  readNumber(position: number): number {
    const number = new Uint32Array(1);
    readSync(this.#descriptor, number, 0, number.byteLength, position);
    return number[0] ?? 0;
  }

  sync(thread: SyncThread): Promise<void> {
    return thread.sync(this.#descriptor);
  }

  close(): void {
    closeSync(this.#descriptor);
  }

  /** The number of this process's descriptors of the file. Infinite if the system does not list descriptors. */
  #descriptorCount(): number {
    if (process.platform !== "linux") return Number.POSITIVE_INFINITY;
    const { dev, ino } = fstatSync(this.#descriptor, { bigint: true });
    return listOpenFiles().filter((descriptor) => {
      try {
        const open = fstatSync(descriptor, { bigint: true });
        return open.ino === ino && open.dev === dev;
      } catch (error) {
        // Another thread has closed it since; the listing has a descriptor of its own too.
        if (isCode(error, "EBADF")) return false;
        throw error;
      }
    }).length;
  }

  #changeNow(): FileChange | null {
    let found: { readonly dev: bigint; readonly ino: bigint } | undefined;
    try {
      found = statSync(this.#path, { bigint: true, throwIfNoEntry: false });
    } catch (error) {
      // ENOTDIR: a folder above is now a file, so this file does not exist. Any other error would also prevent the
      // next start from finding it.
      if (!isCode(error, "ENOTDIR")) return "unreachable";
    }
    this.#opened ??= fstatSync(this.#descriptor, { bigint: true });
    if (found?.ino === this.#opened.ino && found.dev === this.#opened.dev) return null;
    if (found) return "replaced";
    return this.isLost ? "deleted" : "moved";
  }
}

function open(path: string): number {
  try {
    return openSync(path, FLAGS, 0o600);
  } catch (error) {
    throw new OperatorError(
      `the database file ${path} cannot be opened: ${error instanceof Error ? error.message : String(error)}`,
      "check that it is a file, that this user can write to it, and that the disk has free space",
    );
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
