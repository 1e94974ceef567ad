/** Reads the rows of a gateway's store, past the gateway. */
import { Database } from "bun:sqlite";
import { databasePath } from "../../src/store/directory.ts";
import { databaseIn } from "./postgres/engine.ts";

type Row = Readonly<Record<string, string | number | null>>;

/** All rows that a statement without parameters returns. PostgreSQL's integers become numbers. */
export async function rowsOf(dataDir: string, sql: string): Promise<Row[]> {
  const database = databaseIn(dataDir);
  if (database) return (await database.query<Row>(sql)).map(withNumbers);
  using file = new Database(databasePath(dataDir), { readonly: true });
  return file.query<Row, []>(sql).all();
}

/** The driver returns int8 as text. */
function withNumbers(row: Row): Row {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, /^-?\d+$/.test(String(value)) ? Number(value) : value]),
  );
}
