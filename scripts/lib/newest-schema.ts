/**
 * Writes src/store/sqlite/newest-schema.sql, the schema that all migrations create, as one script:
 * `bun run schema`, after a migration was added.
 */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { migrate } from "../../src/store/sqlite/migrate.ts";
import { MIGRATIONS } from "../../src/store/sqlite/migrations/index.ts";

const PATH = join(import.meta.dir, "..", "..", "src", "store", "sqlite", "newest-schema.sql");
const HEADER =
  "-- What all migrations create, and the rows that they leave, for a new database. Made by scripts/lib/newest-schema.ts.\n";
/** Without the indexes of primary keys and SQLite's own tables, which SQLite creates itself. */
const OBJECTS =
  "SELECT name, type, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY rowid";

interface SchemaStatement {
  readonly name: string;
  readonly type: string;
  readonly sql: string;
}

/** The script that has the same effect on an empty database as all migrations. */
export function newestSchema(): string {
  const database = new Database(":memory:");
  try {
    // A list of its own: `migrate` creates the newest schema with the script.
    migrate(database, [...MIGRATIONS]);
    const objects = database.query<SchemaStatement, []>(OBJECTS).all();
    const tables = objects.filter(({ type }) => type === "table");
    const rows = tables.flatMap(({ name }) => rowsOf(database, name));
    return `${HEADER}${[...objects.map(({ sql }) => sql), ...rows].map((sql) => `${sql};\n`).join("")}`;
  } finally {
    database.close();
  }
}

function rowsOf(database: Database, table: string): string[] {
  const columns = database.query<{ name: string }, []>(`PRAGMA table_info(${table})`).all();
  const names = columns.map(({ name }) => name).join(", ");
  const values = columns.map(({ name }) => `quote(${name})`).join(" || ', ' || ");
  return database
    .query<{ row: string }, []>(`SELECT ${values} AS row FROM ${table}`)
    .all()
    .map(({ row }) => `INSERT INTO ${table} (${names}) VALUES (${row})`);
}

if (import.meta.main) await Bun.write(PATH, newestSchema());
