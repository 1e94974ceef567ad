import type { Db, Sql, SqlValue } from "../db.ts";
import { openReader, openWriter } from "./connection.ts";
import { GroupCommit } from "./group.ts";
import { migrate } from "./migrate.ts";

/**
 * Opens (and creates) the database file, brings its schema up to date and answers the port. One process at a time: the
 * caller holds the data directory's lock.
 *
 * @throws OperatorError when the file is of a newer program or is no Gatehouse database.
 */
export function openSqlite(path: string): Db {
  const writer = openWriter(path);
  try {
    migrate(writer.database);
  } catch (error) {
    writer.close();
    throw error;
  }
  const reader = openReader(path);
  const group = new GroupCommit(writer);
  const reads: Pick<Sql, "all" | "get"> = {
    async all<Row>(sql: string, params?: readonly SqlValue[]) {
      return reader.all<Row>(sql, params);
    },
    async get<Row>(sql: string, params?: readonly SqlValue[]) {
      return reader.get<Row>(sql, params);
    },
  };
  return {
    ...reads,
    run: (sql, params) => group.submit((tx) => tx.run(sql, params), { single: true }),
    tx: (work, options = {}) => group.submit(work, options),
    async close() {
      await group.drain();
      reader.close();
      // Leaves one file behind: the log is written back and removed.
      writer.database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
      writer.close();
    },
  };
}
