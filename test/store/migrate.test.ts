import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { OperatorError } from "../../src/base/errors.ts";
import { type Migration, migrate, SCHEMA_VERSION } from "../../src/store/sqlite/migrate.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { tempDir } from "../support/process.ts";

let directory: ReturnType<typeof tempDir>;
let path: string;

beforeEach(() => {
  directory = tempDir();
  path = join(directory.path, "gatehouse.db");
});

afterEach(() => directory.remove());

const ONE: Migration = { name: "one", sql: "CREATE TABLE one (x INTEGER); INSERT INTO one VALUES (1);" };
const TWO: Migration = { name: "two", sql: "ALTER TABLE one ADD COLUMN y INTEGER; UPDATE one SET y = 2;" };
const BROKEN: Migration = {
  name: "broken",
  sql: "CREATE TABLE half (x INTEGER); INSERT INTO nowhere VALUES (1);",
};

function versionOf(database: Database): number {
  return database.query<{ user_version: number }, []>("PRAGMA user_version").get()?.user_version ?? -1;
}

function refusal(work: () => unknown): OperatorError {
  try {
    work();
  } catch (error) {
    if (error instanceof OperatorError) return error;
    throw error;
  }
  throw new Error("it was not refused");
}

describe("opening refuses, with the next step to take", () => {
  test.each([
    ["a newer schema", `PRAGMA user_version = ${SCHEMA_VERSION + 1}`, "newer Gatehouse", "newer version"],
    ["another program's database", "PRAGMA application_id = 7", "not a Gatehouse database", "--data"],
    ["a database with foreign tables", "PRAGMA application_id = 0", "not a Gatehouse database", "--data"],
  ])("%s, and leaves it as it was", (_, change, message, hint) => {
    new Database(path).close();
    const mark = new Database(path);
    migrate(mark, [ONE]);
    mark.exec(change);
    const before = versionOf(mark);
    mark.close();
    const error = refusal(() => openSqlite(path));
    expect(error.message).toContain(message);
    expect(error.hint).toContain(hint);
    const after = new Database(path);
    expect(versionOf(after)).toBe(before);
    expect(after.query("SELECT x FROM one").values()).toEqual([[1]]);
    after.close();
  });

  test.each([
    [
      "a file that is not a database",
      () => writeFileSync(path, "no database ".repeat(1_000)),
      "not a Gatehouse database",
    ],
    ["a folder of that name", () => mkdirSync(path), "cannot be opened"],
    [
      "a database that is damaged",
      () => {
        const database = new Database(path);
        migrate(database);
        database.close();
        const bytes = Buffer.alloc(4096 * 4, 0xff);
        new Database(path).close();
        writeFileSync(path, Buffer.concat([bytes.subarray(0, 0), damage(path)]));
      },
      "cannot be opened",
    ],
  ])("%s", (_, make, message) => {
    make();
    const error = refusal(() => openSqlite(path));
    expect(error.message).toContain(message);
    expect(error.hint).toBeDefined();
  });
});

/** The file with its schema page overwritten, except for the header. */
function damage(file: string): Buffer {
  const database = new Database(file);
  const bytes = Buffer.from(database.serialize());
  database.close();
  return bytes.fill(0xee, 100, 4096);
}

describe("migrating", () => {
  test("brings an empty file to this program's version, and the second time changes nothing", async () => {
    for (let time = 0; time < 2; time++) {
      const db = openSqlite(path);
      expect(await db.get("SELECT COUNT(*) AS ready FROM meta")).toEqual({ ready: 1 });
      await db.close();
    }
    const database = new Database(path);
    expect(versionOf(database)).toBe(SCHEMA_VERSION);
    expect(database.query("PRAGMA application_id").get()).toEqual({ application_id: 0x47544853 });
    database.close();
  });

  test("runs only the missing steps, in order", () => {
    const database = new Database(path);
    migrate(database, [ONE]);
    database.exec("UPDATE one SET x = 5");
    migrate(database, [ONE, TWO]);
    expect(versionOf(database)).toBe(2);
    expect(database.query("SELECT x, y FROM one").values()).toEqual([[5, 2]]);
    database.close();
  });

  test("that fails leaves version, schema and rows unchanged, and can be repeated", () => {
    const database = new Database(path);
    migrate(database, [ONE]);
    expect(() => migrate(database, [ONE, TWO, BROKEN])).toThrow("nowhere");
    expect(versionOf(database)).toBe(2);
    expect(database.query("SELECT 1 FROM sqlite_schema WHERE name = 'half'").get()).toBeNull();
    migrate(database, [ONE, TWO, { name: "mended", sql: "CREATE TABLE half (x INTEGER);" }]);
    expect(versionOf(database)).toBe(3);
    database.close();
  });

  test("that fails on an empty file leaves it empty", () => {
    const database = new Database(path);
    expect(() => migrate(database, [BROKEN])).toThrow();
    expect(versionOf(database)).toBe(0);
    migrate(database, [ONE]);
    expect(versionOf(database)).toBe(1);
    database.close();
  });
});
