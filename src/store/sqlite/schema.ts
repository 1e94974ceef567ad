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

/** An object of a file that differs from what the migrations create. `foreign`: they do not create it at all. */
export interface SchemaDifference {
  readonly kind: "changed" | "foreign" | "missing";
  readonly object: SchemaObject;
}

/** Reads all objects of a file, in a fixed order. */
export const SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name";

/** The objects that the migrations up to a version create. */
export function schemaOf(version: number): SchemaObject[] {
  const database = new Database(":memory:");
  try {
    migrate(database, MIGRATIONS.slice(0, version));
    return database.query<SchemaObject, []>(SCHEMA).all();
  } finally {
    database.close();
  }
}

/**
 * `schemaDigest` of what all migrations create. Running them all takes 17 ms, a tenth of a start, so most starts
 * compare with this (when a migration is added, test/store/foreign-schema.test.ts shows the new one).
 */
export const NEWEST_DIGEST = "61d4e82a32866f6039566eb1b8065e16a86719c88c03552bf47be8939c922938";

/** SHA-256 of the objects, but for those of the vault's vectors. */
export function schemaDigest(objects: readonly SchemaObject[]): string {
  const compared = objects.filter((object) => OF_SQLITE.test(object.name) || !isMadeByServer(object));
  const texts = compared.map(({ type, name, tbl_name, sql }) => JSON.stringify([type, name, tbl_name, sql]));
  return new Bun.CryptoHasher("sha256").update(texts.join("\n")).digest("hex");
}

/** The differences, in the order of `found`; missing objects come last. */
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

/** For messages: the object's type and name, and the table that it belongs to. */
export function nameOfObject({ type, name, tbl_name: table }: SchemaObject): string {
  const shown = JSON.stringify(name);
  return type === "table" || type === "view"
    ? `The ${type} ${shown}`
    : `The ${type} ${shown} of the table ${table}`;
}

/**
 * Requires that the file has no objects except those that the migrations up to the file's version create. A foreign
 * trigger, view or changed definition would make the server write and seal somebody else's data. MUST come before the
 * migrations, whose statements would fire such a trigger.
 *
 * A missing index or trigger is left to `gatehouse ledger verify`, since it does not change what the server writes.
 * @throws OperatorError that names the object
 */
export function requireOwnSchema(database: Database): void {
  const { application_id: application } = pragma(database, "application_id");
  const { user_version: version } = pragma(database, "user_version");
  // The migrations refuse a file of another program, or of a newer one.
  if (application !== APPLICATION_ID || version === undefined || version > MIGRATIONS.length) return;
  const found = database.query<SchemaObject, []>(SCHEMA).all();
  if (version === MIGRATIONS.length && schemaDigest(found) === NEWEST_DIGEST) return;
  for (const { kind, object } of schemaDifferences(found, schemaOf(version))) {
    const hint = "run `gatehouse ledger verify`, and restore a backup of the data directory";
    if (kind === "missing" && object.type === "table") {
      throw new OperatorError(`${nameOfObject(object)} is missing: somebody has changed the database`, hint);
    }
    if (kind === "missing" || (kind === "foreign" && isMadeByServer(object))) continue;
    if (kind === "changed") {
      throw new OperatorError(
        `${nameOfObject(object)} differs from the one that Gatehouse created: somebody has changed the database`,
        hint,
      );
    }
    throw new OperatorError(
      `${nameOfObject(object)} was added to the database by somebody else`,
      `${hint}; if you added it yourself, drop it`,
    );
  }
}

function pragma(database: Database, name: "application_id" | "user_version"): Record<string, number> {
  return database.query<Record<string, number>, []>(`PRAGMA ${name}`).get() ?? {};
}

/**
 * The tables of the vault's vectors, those that sqlite-vec keeps alongside them, and those that SQLite creates itself.
 */
const VECTORS = /^(?:sqlite_autoindex_)?vault_vectors_\d+(?:_[a-z0-9_]+)?$/;
const OF_SQLITE = /^sqlite_(?:stat[1-4]|sequence)$/;
/** SQLite executes the statement, whatever type the row names. */
const STATEMENTS = {
  table: /^CREATE (?:VIRTUAL TABLE \w+ USING vec0\b|TABLE )/,
  index: /^CREATE INDEX /,
} as const;

/** No migration creates these, and they contain nothing that is sealed or signed. */
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
