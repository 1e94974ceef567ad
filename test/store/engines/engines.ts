/** Both engines behind the same interface, each with an empty store of its own. */
import { join } from "node:path";
import type { Db } from "../../../src/store/db.ts";
import { openPostgres } from "../../../src/store/postgres/open.ts";
import { openSqlite } from "../../../src/store/sqlite/open.ts";
import { createDatabase, missingPostgres, type TestDatabase } from "../../support/postgres/database.ts";
import { tempDir } from "../../support/process.ts";

export interface EngineBench {
  readonly db: Db;
  /** Closes the store, unless the test has done so. */
  close(): Promise<void>;
}

export interface Engine {
  readonly name: string;
  /** Why it cannot be tested here. */
  readonly missing: string | undefined;
  /** Opens a store with the empty table `t`, whose column `k` is a unique number and `v` a text. */
  open(): Promise<EngineBench>;
  /** Where another process can open a new store: a file, or the URL of a database. */
  place(): Promise<string>;
  /** Removes what `open` and `place` have left. */
  remove(): Promise<void>;
}

const TABLE = (text: string, bytes: string) =>
  `CREATE TABLE t (k BIGINT PRIMARY KEY, v ${text} NOT NULL DEFAULT 'x', b ${bytes}, n BIGINT)`;

function sqlite(): Engine {
  const directory = tempDir();
  let stores = 0;
  return {
    name: "SQLite",
    missing: undefined,
    async open() {
      stores += 1;
      const db = openSqlite(join(directory.path, `${stores}.db`));
      await db.run(TABLE("TEXT", "BLOB"));
      const close = once(() => db.close());
      return { db: Object.assign(Object.create(db) as Db, { close }), close };
    },
    place: async () => join(directory.path, `${++stores}.db`),
    remove: async () => directory.remove(),
  };
}

function postgres(): Engine {
  let database: Promise<TestDatabase> | undefined;
  const place = async () => {
    database ??= createDatabase();
    return (await database).url;
  };
  return {
    name: "PostgreSQL",
    missing: missingPostgres,
    async open() {
      const db = await openPostgres({ url: await place() });
      await db.run("DROP TABLE IF EXISTS t");
      await db.run(TABLE('TEXT COLLATE "C"', "BYTEA"));
      const close = once(() => db.close());
      return { db: { ...db, close }, close };
    },
    place,
    remove: async () => (await database)?.drop(),
  };
}

/** New engines, by their names. Each test file has its own, and removes them. */
export function engines(): readonly (readonly [string, Engine])[] {
  return [sqlite(), postgres()].map((engine) => [engine.name, engine]);
}

function once(close: () => Promise<void>): () => Promise<void> {
  let closed: Promise<void> | undefined;
  return () => {
    closed ??= close();
    return closed;
  };
}
