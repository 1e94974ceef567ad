import { Database } from "bun:sqlite";

/** A server may be starting, and hold the lock for a moment. */
const BUSY_TIMEOUT_MS = 10_000;

/**
 * Copies a database, as of one moment, into a new file, while a server may write. SQLite does it (`VACUUM INTO`), so erased
 * data that remains in unused parts of pages is not copied. It blocks the thread, and copies about 400 MB a second.
 * SQLite may leave an empty log and its index beside the database.
 * @param target where there MUST be no file
 */
export function copySnapshot(path: string, target: string): void {
  const database = new Database(path, { readonly: true });
  try {
    database.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    // Nothing in the schema of an untrusted file is executed.
    database.exec("PRAGMA trusted_schema = OFF");
    database.query("VACUUM INTO ?").run(target);
  } finally {
    database.close();
  }
}
