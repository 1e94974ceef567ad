import { Database } from "bun:sqlite";
import type { CopiedTable } from "../copying/tables.ts";
import { migrate } from "./migrate.ts";
import type { ReadOnlyDatabase } from "./read-only.ts";

/** The heads of all ledgers, which only a single node signs together, and what SQLite keeps for itself. */
const OF_ONE_NODE = /^(?:ledger_heads|ledger_node_heads|sqlite_\w+)$/;

/** The tables of the newest schema, each after those that it refers to. */
export function copiedTables(): readonly CopiedTable[] {
  const database = new Database(":memory:");
  try {
    migrate(database);
    const names = database
      .query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
      .all()
      .map(({ name }) => name)
      .filter((name) => !OF_ONE_NODE.test(name));
    return inOrder(names, (name) => referencesOf(database, name)).map((name) => tableOf(database, name));
  } finally {
    database.close();
  }
}

function tableOf(database: Database, name: string): CopiedTable {
  const columns = database
    .query<{ name: string; pk: number }, [string]>("SELECT name, pk FROM pragma_table_info(?)")
    .all(name);
  const key = columns.filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk);
  return { name, columns: columns.map((column) => column.name), key: key.map((column) => column.name) };
}

function referencesOf(database: Database, name: string): readonly string[] {
  return database
    .query<{ table: string }, [string]>('SELECT "table" FROM pragma_foreign_key_list(?)')
    .all(name)
    .map(({ table }) => table);
}

function inOrder(names: readonly string[], referencesOf: (name: string) => readonly string[]): string[] {
  const ordered = new Set<string>();
  const add = (name: string): void => {
    if (ordered.has(name)) return;
    for (const other of referencesOf(name)) add(other);
    ordered.add(name);
  };
  for (const name of names) add(name);
  return [...ordered];
}

/** The keys that automatic keys continue after, by table. */
export function lastKeysOf(database: ReadOnlyDatabase): ReadonlyMap<string, number> {
  const rows = database.all<{ name: string; seq: number }>("SELECT name, seq FROM sqlite_sequence");
  return new Map(rows.map(({ name, seq }) => [name, seq]));
}
