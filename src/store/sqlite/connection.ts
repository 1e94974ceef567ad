import { Database, type Statement } from "bun:sqlite";
import type { SqlValue } from "../db.ts";

const STATEMENT_LIMIT = 512;
/** How long one statement waits for a foreign process's lock before the group is tried again without blocking the loop. */
const BUSY_TIMEOUT_MS = 50;

/** One connection with its prepared statements. Everything here is synchronous. */
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
    // `$1` is PostgreSQL's numbered parameter, but only a name to SQLite; `?1` is SQLite's numbered one.
    const statement = this.database.prepare<unknown, SqlValue[]>(sql.replace(/\$(\d+)/g, "?$1"));
    this.#statements.set(sql, statement);
    return statement;
  }
}

/**
 * The writer. `synchronous=FULL` syncs the log at each commit; `recursive_triggers` lets REPLACE meet the ledger's
 * triggers; `secure_delete` overwrites what is deleted.
 */
export function openWriter(path: string): Connection {
  const database = new Database(path, { create: true, strict: true });
  database.exec("PRAGMA journal_mode = WAL");
  database.exec("PRAGMA synchronous = FULL");
  database.exec("PRAGMA secure_delete = ON");
  database.exec("PRAGMA recursive_triggers = ON");
  database.exec("PRAGMA foreign_keys = ON");
  database.exec("PRAGMA trusted_schema = OFF");
  database.exec("PRAGMA cache_size = -16384");
  database.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  return new Connection(database);
}

/** The reader: a connection of its own, so that reads never see a transaction that is still being written. */
export function openReader(path: string): Connection {
  const database = new Database(path, { readonly: true, strict: true });
  database.exec("PRAGMA query_only = ON");
  database.exec("PRAGMA trusted_schema = OFF");
  database.exec("PRAGMA cache_size = -16384");
  database.exec("PRAGMA busy_timeout = 1000");
  return new Connection(database);
}
