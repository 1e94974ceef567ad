import { OperatorError } from "../../base/errors.ts";
import { type CopiedRow, type CopiedTable, columnList, selectAll } from "../copying/tables.ts";
import { DbWithin } from "../copying/within.ts";
import type { SqlValue } from "../db.ts";
import { insertRowsSql } from "../many-rows.ts";
import { type Answer, connect, type SingleConnection } from "./driver.ts";
import { EngineError } from "./errors.ts";
import { TIMEOUTS } from "./limits.ts";
import { databaseName, NEWEST_VERSION, schemaVersion, upgrade } from "./upgrade.ts";
import { encodeParameters } from "./values.ts";

/** A statement may take this long: an index of many rows, or the commit. */
const LONGEST_STATEMENT_MS = 30 * 60_000;
/** Rows in one statement. Statements with fewer placeholders are parsed faster. */
const MOST_ROWS = 200;
const MOST_BYTES = 1024 * 1024;
/** Statements that are sent before the first of them is answered. */
const IN_FLIGHT = 4;
const LEAST_FETCHED = 1;
const MOST_FETCHED = 500;
/** A node that was seen this recently may still be running. */
const SEEN_MS = 10_000;

/**
 * The tables that this role may change. It may only append to those of the ledger, and whoever appends has locked a row of
 * `ledger_tails`.
 */
const CHANGEABLE = `SELECT quote_ident(relname) AS name FROM pg_class
  WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND has_table_privilege(oid, 'UPDATE')
  ORDER BY relname`;
const NODES_SEEN = `SELECT count(*) AS count FROM nodes
  WHERE seen_at > (extract(epoch FROM clock_timestamp()) * 1000)::bigint - ${SEEN_MS}`;
const SEQUENCES = `SELECT c.relname AS "table", a.attname AS "column",
    pg_get_serial_sequence(c.relname, a.attname) AS sequence
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
  WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND a.attidentity <> ''`;

interface Sequence {
  readonly table: string;
  readonly column: string;
  readonly sequence: string;
}

/**
 * A whole database, read or written in one transaction on one connection. All tables are locked: no server can start on it
 * in the meantime, since each one first reads the version of the schema, and one that was frozen can write nothing.
 */
export class WholeDatabase {
  /** For messages: without the password. */
  readonly name: string;
  /** The database for parts that take a store. */
  readonly db = new DbWithin({
    all: async (sql, params) => (await this.send(sql, params)).rows,
    run: async (sql, params) => (await this.send(sql, params)).count,
  });
  readonly #connection: SingleConnection;

  private constructor(name: string, connection: SingleConnection) {
    this.name = name;
    this.#connection = connection;
  }

  /**
   * Opens a database to be read. Its schema is not changed.
   * @param url a direct URL
   * @throws OperatorError if the database cannot be used, has another schema, or servers use it
   */
  static async openSource(url: string): Promise<WholeDatabase> {
    const name = databaseName(url);
    const version = await schemaVersion(url);
    if (version === 0) throw new OperatorError(`the database ${name} is empty`, "correct its URL");
    requireNewest(name, version);
    return WholeDatabase.#open(url);
  }

  /**
   * Opens a database to be written. Its schema is created or upgraded, unless servers use it.
   * @param url a direct URL
   * @throws OperatorError if the database cannot be used, or servers use it
   */
  static async openTarget(url: string): Promise<WholeDatabase> {
    return WholeDatabase.#open(url, async (whole) => {
      if ((await schemaVersion(url)) > 0) await whole.#requireUnused();
      const { to } = await upgrade(url);
      requireNewest(whole.name, to);
    });
  }

  static async #open(
    url: string,
    prepare: (whole: WholeDatabase) => Promise<void> = (whole) => whole.#requireUnused(),
  ): Promise<WholeDatabase> {
    const connection = await connect(url, { ...TIMEOUTS, answerMs: LONGEST_STATEMENT_MS });
    const whole = new WholeDatabase(databaseName(url), connection);
    try {
      // Before anything is locked: the locks would stop servers that are running.
      await prepare(whole);
      const tables = await whole.db.all<{ name: string }>(CHANGEABLE);
      await whole.send("BEGIN ISOLATION LEVEL REPEATABLE READ");
      await whole.send("SET LOCAL lock_timeout = '10s'");
      await whole.send("SET LOCAL statement_timeout = 0");
      // The state that is read is that of the next statement.
      await whole.send("LOCK TABLE gatehouse_schema IN ACCESS EXCLUSIVE MODE");
      await whole.send(`LOCK TABLE ${tables.map(({ name }) => name).join(", ")} IN EXCLUSIVE MODE`);
      await whole.#requireUnused();
      return whole;
    } catch (error) {
      connection.destroy();
      throw error;
    }
  }

  async #requireUnused(): Promise<void> {
    const [row] = await this.db.all<{ count: number }>(NODES_SEEN);
    if (row?.count === 0) return;
    throw new OperatorError(
      `the database ${this.name} is in use by ${row?.count} ${row?.count === 1 ? "server" : "servers"}`,
      "stop all servers that use it; after one was killed, wait ten seconds",
    );
  }

  /** @throws OperatorError if the connection is lost or the server refuses the statement */
  async send(sql: string, params: readonly SqlValue[] = []): Promise<Answer> {
    try {
      return await this.#connection.send(sql, encodeParameters(params));
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      throw new OperatorError(
        `the database ${this.name} cannot be used: ${error.message}`,
        "nothing was changed; try again",
      );
    }
  }

  /** Whether no table has a row, but for settings that a new schema has. */
  async isEmpty(tables: readonly CopiedTable[]): Promise<boolean> {
    const names = [
      ...tables.map(({ name }) => name).filter((name) => name !== "meta"),
      "sealed_keys",
      "ledger_tails",
    ];
    const { rows } = await this.send(
      `SELECT ${names.map((name) => `EXISTS (SELECT 1 FROM ${name})`).join(" OR ")} AS used`,
    );
    return rows[0]?.used === 0;
  }

  /** All rows of a table in the order of its key, in bounded memory. */
  async *rows(table: CopiedTable): AsyncGenerator<CopiedRow, void> {
    const cursor = `copy_${table.name}`;
    await this.send(`DECLARE ${cursor} NO SCROLL CURSOR FOR ${selectAll(table)}`);
    for (let count = LEAST_FETCHED; ; ) {
      const { rows } = await this.send(`FETCH ${count} FROM ${cursor}`);
      if (rows.length === 0) break;
      yield* rows;
      const average = rows.reduce((total, row) => total + sizeOf(row), 0) / rows.length;
      const fitting = Math.floor(MOST_BYTES / average);
      count = Math.min(MOST_FETCHED, Math.max(LEAST_FETCHED, fitting), count * 8);
    }
    await this.send(`CLOSE ${cursor}`);
  }

  /** Inserts rows in their order, in bounded memory. */
  async insert(table: CopiedTable, rows: AsyncIterable<CopiedRow>): Promise<void> {
    const into = `${table.name} (${columnList(table.columns)})`;
    const inFlight: Promise<unknown>[] = [];
    let batch: SqlValue[] = [];
    let [count, bytes] = [0, 0];
    const flush = async () => {
      const sent = this.send(insertRowsSql(into, table.columns.length, count), batch);
      // Waited for in order, where its failure is reported.
      sent.catch(() => {});
      inFlight.push(sent);
      batch = [];
      [count, bytes] = [0, 0];
      if (inFlight.length >= IN_FLIGHT) await inFlight.shift();
    };
    for await (const row of rows) {
      for (const column of table.columns) batch.push(row[column] ?? null);
      count += 1;
      bytes += sizeOf(row);
      if (count === MOST_ROWS || bytes >= MOST_BYTES) await flush();
    }
    if (count > 0) await flush();
    for (const sent of inFlight) await sent;
  }

  /** The last keys that identity columns have given out, by table. */
  async lastKeys(): Promise<ReadonlyMap<string, number>> {
    const keys = new Map<string, number>();
    for (const { table, sequence } of await this.db.all<Sequence>(SEQUENCES)) {
      const [row] = await this.db.all<{ last: number }>(
        `SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS last FROM ${sequence}`,
      );
      keys.set(table, row?.last ?? 0);
    }
    return keys;
  }

  /** Lets identity columns continue after their highest keys, and after those in `last`. */
  async continueKeys(last: ReadonlyMap<string, number>): Promise<void> {
    for (const { table, column, sequence } of await this.db.all<Sequence>(SEQUENCES)) {
      const [row] = await this.db.all<{ key: number }>(
        `SELECT COALESCE(MAX("${column}"), 0) AS key FROM ${table}`,
      );
      const key = Math.max(row?.key ?? 0, last.get(table) ?? 0);
      if (key > 0) await this.send("SELECT setval($1, $2)", [sequence, key]);
    }
  }

  async commit(): Promise<void> {
    try {
      await this.#connection.send("COMMIT");
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      throw new OperatorError(
        `the connection to the database ${this.name} failed while the copy was committed: ${error.message}`,
        "start no server yet: run the command again; if the database is then not empty, the copy is complete",
      );
    }
    await this.#connection.close();
  }

  /** Undoes everything that was written. Nothing to do after a commit. */
  abandon(): void {
    this.#connection.destroy();
  }
}

function sizeOf(row: CopiedRow): number {
  return Object.values(row).reduce<number>((total, value) => total + 8 + (lengthOf(value) ?? 0), 0);
}

function lengthOf(value: SqlValue | undefined): number | undefined {
  return typeof value === "string" || value instanceof Uint8Array ? value.length : undefined;
}

/** @throws OperatorError if it is older or newer: the content of all tables has to be known */
function requireNewest(name: string, version: number): void {
  if (version === NEWEST_VERSION) return;
  throw new OperatorError(
    `the database ${name} has the schema ${version}, and this program reads ${NEWEST_VERSION}`,
    version < NEWEST_VERSION
      ? "upgrade it with `gatehouse store migrate`, or use the program that its servers run"
      : "use the newer program that has upgraded it",
  );
}
