/** A new database gets the newest schema in one step. It is the one that the migrations create. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { newestSchema } from "../../scripts/lib/newest-schema.ts";
import { migrate, SCHEMA_VERSION } from "../../src/store/sqlite/migrate.ts";
import { MIGRATIONS } from "../../src/store/sqlite/migrations/index.ts";
import NEWEST_SCHEMA from "../../src/store/sqlite/newest-schema.sql" with { type: "text" };
import { NEWEST_DIGEST, SCHEMA, type SchemaObject, schemaDigest } from "../../src/store/sqlite/schema.ts";

const HEADER = ["application_id", "auto_vacuum", "encoding", "page_size", "user_version"];

function content(database: Database) {
  const objects = database.query<SchemaObject, []>(SCHEMA).all();
  const tables = objects.filter(({ type }) => type === "table").map(({ name }) => name);
  return {
    objects,
    rows: Object.fromEntries(tables.map((name) => [name, database.query(`SELECT * FROM ${name}`).all()])),
    header: HEADER.map((name) => database.query(`PRAGMA ${name}`).get()),
  };
}

function created(how: (database: Database) => void) {
  const database = new Database(":memory:");
  try {
    how(database);
    return content(database);
  } finally {
    database.close();
  }
}

test("the script is what `bun run schema` writes", () => {
  expect(NEWEST_SCHEMA).toBe(newestSchema());
});

test("a new database has the objects, rows and version that the migrations one by one lead to", () => {
  const stepwise = created((database) => {
    for (const step of MIGRATIONS.keys()) migrate(database, MIGRATIONS.slice(0, step + 1));
  });
  const atOnce = created((database) => migrate(database));
  expect(atOnce).toEqual(stepwise);
  expect(schemaDigest(atOnce.objects)).toBe(NEWEST_DIGEST);
  expect(atOnce.header.at(-1)).toEqual({ user_version: SCHEMA_VERSION });
});
