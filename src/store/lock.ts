import { Database } from "bun:sqlite";
import { join } from "node:path";
import { OperatorError } from "../base/errors.ts";
import { sqliteCode } from "./sqlite/connection.ts";

const LOCK_FILE = "gatehouse.lock";

/** Keeps the databases referenced: garbage collection would close them and thereby release their locks. */
const held = new Set<Database>();

/** Held until `release` is called or the process ends, however it ends. */
export interface DirectoryLock {
  release(): void;
}

/**
 * Locks the data directory for this process. Returns null if another process has it. The lock is SQLite's exclusive
 * lock on a small file next to the database. The operating system releases it when its holder dies, so it is never
 * stale, and a copied directory is not locked.
 *
 * @throws OperatorError if the directory cannot be written
 */
export function lockDirectory(directory: string): DirectoryLock | null {
  let database: Database | undefined;
  try {
    database = new Database(join(directory, LOCK_FILE), { create: true });
    database.exec("PRAGMA locking_mode = EXCLUSIVE");
    database.exec("BEGIN EXCLUSIVE");
  } catch (error) {
    database?.close();
    if (sqliteCode(error) === "SQLITE_BUSY") return null;
    throw unwritable(directory, error);
  }
  const locked = database;
  held.add(locked);
  return {
    release() {
      held.delete(locked);
      locked.exec("ROLLBACK");
      locked.close();
    },
  };
}

/** Another process has locked the data directory. */
export class DirectoryInUse extends OperatorError {
  constructor(directory: string) {
    super(
      `another process is using the data directory ${directory}`,
      "stop it, or choose another directory with --data",
    );
  }
}

function unwritable(directory: string, error: unknown): unknown {
  const code = sqliteCode(error);
  if (code === "" || !(error instanceof Error)) return error;
  if (code === "SQLITE_FULL") {
    return new OperatorError(
      `the disk of the data directory ${directory} is full`,
      "free some space on it, then try again",
    );
  }
  if (code === "SQLITE_NOTADB") {
    const file = join(directory, LOCK_FILE);
    return new OperatorError(`the file ${file} is not a Gatehouse lock file`, "move it away, then try again");
  }
  return new OperatorError(
    `the data directory ${directory} cannot be written: ${error.message} (${code})`,
    "choose one that this user can write to, with --data or GATEHOUSE_DATA",
  );
}
