import { Database } from "bun:sqlite";
import { join } from "node:path";

/** Held until `release` is called or the process ends, however it ends. */
export interface DirectoryLock {
  release(): void;
}

/**
 * Takes the data directory for this process, or answers null when another one has it. The lock is SQLite's own exclusive
 * lock on a small file beside the database: the operating system gives it back when its holder dies, so nothing stale
 * is ever left, and a copied directory carries no lock.
 */
export function lockDirectory(directory: string): DirectoryLock | null {
  const database = new Database(join(directory, "gatehouse.lock"), { create: true });
  try {
    database.exec("PRAGMA locking_mode = EXCLUSIVE");
    database.exec("BEGIN EXCLUSIVE");
  } catch (error) {
    database.close();
    if (error instanceof Error && "code" in error && error.code === "SQLITE_BUSY") return null;
    throw error;
  }
  return {
    release() {
      database.exec("ROLLBACK");
      database.close();
    },
  };
}
