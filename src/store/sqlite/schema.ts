import { Database } from "bun:sqlite";
import { OperatorError } from "../../base/errors.ts";
import { APPLICATION_ID, migrate } from "./migrate.ts";
import { MIGRATIONS } from "./migrations/index.ts";

/** A row of `sqlite_schema`. */
export interface SchemaObject {
  readonly type: string;
  readonly name: string;
  /** The table or view that it belongs to. */
  readonly tbl_name: string;
  /** Null for the index of a primary key. */
  readonly sql: string | null;
}

/** An object of a file that is not as the migrations make it: `foreign` is one that they do not make at all. */
export interface SchemaDifference {
  readonly kind: "changed" | "foreign" | "missing";
  readonly object: SchemaObject;
}

/** Reads all objects of a file, in a fixed order. */
export const SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name";

/** Of the objects that the migrations up to a version make. */
export function schemaOf(version: number): SchemaObject[] {
  const database = new Database(":memory:");
  try {
    migrate(database, MIGRATIONS.slice(0, version));
    return database.query<SchemaObject, []>(SCHEMA).all();
  } finally {
    database.close();
  }
}

/** What differs, in the order of `found`; what is missing comes last. */
export function schemaDifferences(
  found: readonly SchemaObject[],
  expected: readonly SchemaObject[],
): SchemaDifference[] {
  const left = new Map(expected.map((object) => [keyOf(object), object]));
  const differences: SchemaDifference[] = [];
  for (const object of found) {
    const known = left.get(keyOf(object));
    left.delete(keyOf(object));
    if (known?.sql === object.sql && known.tbl_name === object.tbl_name) continue;
    differences.push({ kind: known ? "changed" : "foreign", object });
  }
  for (const object of left.values()) differences.push({ kind: "missing", object });
  return differences;
}

/** For people: its type and name, and the table that it belongs to. */
export function nameOfObject({ type, name, tbl_name: table }: SchemaObject): string {
  const shown = JSON.stringify(name);
  return type === "table" || type === "view"
    ? `The ${type} ${shown}`
    : `The ${type} ${shown} of the table ${table}`;
}

/**
 * Requires that the file's objects are those that the migrations up to the file's own version make. A trigger, a view or a
 * changed definition of somebody else's would make the server write, and seal, what that person wants. MUST come before
 * the migrations, whose statements would set off such a trigger.
 *
 * What is missing is left to `gatehouse ledger verify`: it makes the server write nothing else.
 * @throws OperatorError that names the object
 */
export function requireOwnSchema(database: Database): void {
  const { application_id: application } = pragma(database, "application_id");
  const { user_version: version } = pragma(database, "user_version");
  // The migrations refuse a file of another program, or of a newer one.
  if (application !== APPLICATION_ID || version === undefined || version > MIGRATIONS.length) return;
  const found = database.query<SchemaObject, []>(SCHEMA).all();
  for (const { kind, object } of schemaDifferences(found, schemaOf(version))) {
    if (kind === "missing" || (kind === "foreign" && isMadeByServer(object))) continue;
    const hint = "run `gatehouse ledger verify`, and put a backup of the data directory back";
    if (kind === "changed") {
      throw new OperatorError(
        `${nameOfObject(object)} is not as Gatehouse made it: somebody has changed the database`,
        hint,
      );
    }
    throw new OperatorError(
      `${nameOfObject(object)} was added to the database by somebody else`,
      `${hint}; where you made it yourself, drop it`,
    );
  }
}

function pragma(database: Database, name: "application_id" | "user_version"): Record<string, number> {
  return database.query<Record<string, number>, []>(`PRAGMA ${name}`).get() ?? {};
}

/** The tables of the vault's vectors with what sqlite-vec keeps beside them, and what SQLite makes by itself or by `ANALYZE`. */
const VECTORS = /^(?:sqlite_autoindex_)?vault_vectors_\d+(?:_[a-z0-9_]+)?$/;
const OF_SQLITE = /^sqlite_(?:stat[1-4]|sequence)$/;
/** SQLite goes by the statement, whatever type the row names. */
const STATEMENTS = {
  table: /^CREATE (?:VIRTUAL TABLE \w+ USING vec0\b|TABLE )/,
  index: /^CREATE INDEX /,
} as const;

/** No migration makes these, and nothing that is sealed or signed is in them. */
function isMadeByServer({ type, name, tbl_name: table, sql }: SchemaObject): boolean {
  if (type === "table") {
    return (VECTORS.test(name) || OF_SQLITE.test(name)) && name === table && STATEMENTS.table.test(sql ?? "");
  }
  return (
    type === "index" &&
    VECTORS.test(name) &&
    VECTORS.test(table) &&
    (sql === null || STATEMENTS.index.test(sql))
  );
}

function keyOf({ type, name }: SchemaObject): string {
  return `${type} ${name}`;
}
