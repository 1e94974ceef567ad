import { Database, type Statement } from "bun:sqlite";
import { type CopiedRow, type CopiedTable, columnList } from "../copying/tables.ts";
import { DbWithin } from "../copying/within.ts";
import type { SqlValue } from "../db.ts";
import { insertRowsSql } from "../many-rows.ts";
import { migrate } from "./migrate.ts";

/** A new database file, written in one transaction. It is complete once it was committed. */
export class NewDatabase {
  /** The database for parts that take a store. */
  readonly db = new DbWithin({
    all: async (sql, params) => this.#prepare(sql).all(...params),
    run: async (sql, params) => this.#prepare(sql).run(...params).changes,
  });
  readonly #database: Database;
  readonly #statements = new Map<string, Statement<unknown, SqlValue[]>>();

  /** @param path where there MUST be no file */
  constructor(path: string) {
    this.#database = new Database(path, { create: true });
    this.#database.exec("PRAGMA synchronous = FULL");
    this.#database.exec("PRAGMA secure_delete = ON");
    migrate(this.#database);
    this.#database.exec("BEGIN");
  }

  async insert(table: CopiedTable, rows: AsyncIterable<CopiedRow>): Promise<void> {
    const insert = this.#prepare(
      insertRowsSql(`${table.name} (${columnList(table.columns)})`, table.columns.length, 1),
    );
    for await (const row of rows) insert.run(...table.columns.map((column) => row[column] ?? null));
  }

  /** Lets automatic keys continue after those in `last`, by table. */
  continueKeys(last: ReadonlyMap<string, number>): void {
    const known = new Set(
      this.#database
        .query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE sql LIKE '%AUTOINCREMENT%'")
        .all()
        .map(({ name }) => name),
    );
    for (const [table, key] of last) {
      if (!known.has(table) || key === 0) continue;
      this.#database.query("DELETE FROM sqlite_sequence WHERE name = ?").run(table);
      this.#database.query("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)").run(table, key);
    }
  }

  commit(): void {
    this.#database.exec("COMMIT");
  }

  /** What was not committed is undone. */
  close(): void {
    for (const statement of this.#statements.values()) statement.finalize();
    this.#database.close();
  }

  #prepare(sql: string): Statement<unknown, SqlValue[]> {
    const known = this.#statements.get(sql);
    if (known) return known;
    const statement = this.#database.prepare<unknown, SqlValue[]>(sql.replace(/\$(\d+)/g, "?$1"));
    this.#statements.set(sql, statement);
    return statement;
  }
}
