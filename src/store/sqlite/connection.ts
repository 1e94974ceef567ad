import { Database, type Statement } from "bun:sqlite";
import type { SqlValue } from "../db.ts";

const STATEMENT_LIMIT = 512;
/**
 * How long a read may wait inside SQLite, blocking the event loop. With a write-ahead log, a reader only waits for
 * another process that recovers or resets the log, which takes moments.
 */
const READ_TIMEOUT_MS = 20;
/** How long opening waits for another process's lock. Once open, the writer never waits inside SQLite. */
const OPEN_TIMEOUT_MS = 5_000;

/** `SQLITE_FCNTL_NULL_IO` of SQLite's "Standard File Control Opcodes", which Bun does not name. */
const FCNTL_NULL_IO = 43;

/** A connection with its prepared statements. Everything here is synchronous. */
export class Connection {
  readonly database: Database;
  readonly #statements = new Map<string, Statement<unknown, SqlValue[]>>();

  constructor(database: Database) {
    this.database = database;
  }

  all<Row>(sql: string, params: readonly SqlValue[] = []): Row[] {
    return this.#prepare(sql).all(...params) as Row[];
  }

  get<Row>(sql: string, params: readonly SqlValue[] = []): Row | undefined {
    return (this.#prepare(sql).get(...params) as Row | null) ?? undefined;
  }

  run(sql: string, params: readonly SqlValue[] = []): number {
    return this.#prepare(sql).run(...params).changes;
  }

  /** From now on, another process's lock is an immediate error: waiting inside SQLite would block the event loop. */
  neverWait(): void {
    this.database.exec("PRAGMA busy_timeout = 0");
  }

  /**
   * From now on, a commit does not sync the log: `SyncThread` does. SQLite still syncs it before writing it back to the
   * database file.
   */
  deferSyncs(): void {
    this.database.exec("PRAGMA synchronous = NORMAL");
  }

  /** Reads and writes nothing more. Otherwise SQLite would write the log back when the connection closes. */
  abandon(): void {
    const code = this.database.fileControl(FCNTL_NULL_IO, null);
    if (code !== 0) throw new Error(`SQLite does not release the file (${code})`);
  }

  close(): void {
    for (const statement of this.#statements.values()) statement.finalize();
    this.#statements.clear();
    this.database.close();
  }

  #prepare(sql: string): Statement<unknown, SqlValue[]> {
    const known = this.#statements.get(sql);
    if (known) return known;
    if (this.#statements.size >= STATEMENT_LIMIT) {
      for (const statement of this.#statements.values()) statement.finalize();
      this.#statements.clear();
    }
    // PostgreSQL's numbered parameter `$1` is a mere name in SQLite, whose numbered parameter is `?1`.
    const statement = this.database.prepare<unknown, SqlValue[]>(sql.replace(/\$(\d+)/g, "?$1"));
    this.#statements.set(sql, statement);
    return statement;
  }
}

/**
 * Opens the writer. `synchronous=FULL` syncs the log at each commit, until `deferSyncs`, `recursive_triggers` makes REPLACE fire the
 * ledger's triggers, and `secure_delete` overwrites deleted data.
 */
export function openWriter(path: string): Connection {
  const database = new Database(path, { create: true, strict: true });
  try {
    database.exec(`PRAGMA busy_timeout = ${OPEN_TIMEOUT_MS}`);
    database.exec("PRAGMA journal_mode = WAL");
    database.exec("PRAGMA synchronous = FULL");
    database.exec("PRAGMA secure_delete = ON");
    database.exec("PRAGMA recursive_triggers = ON");
    database.exec("PRAGMA foreign_keys = ON");
    database.exec("PRAGMA trusted_schema = OFF");
    database.exec("PRAGMA cache_size = -16384");
  } catch (error) {
    database.close();
    throw error;
  }
  return new Connection(database);
}

/** Opens the reader: a separate connection, so reads never see an unfinished transaction. */
export function openReader(path: string): Connection {
  const database = new Database(path, { readonly: true, strict: true });
  database.exec("PRAGMA query_only = ON");
  database.exec("PRAGMA trusted_schema = OFF");
  database.exec("PRAGMA cache_size = -16384");
  database.exec(`PRAGMA busy_timeout = ${READ_TIMEOUT_MS}`);
  return new Connection(database);
}

/** SQLite's name of an error, such as `SQLITE_FULL`. Empty for other errors. */
export function sqliteCode(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" && code.startsWith("SQLITE_") ? code : "";
}
