/**
 * A reader of the database that must leave no trace: next to a running server, after one that died, and without one.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SCHEMA_VERSION } from "../../src/store/sqlite/migrate.ts";
import { openSqlite, type SqliteDb } from "../../src/store/sqlite/open.ts";
import { DatabaseUnreadable, NEWEST_SCHEMA, openReadOnly } from "../../src/store/sqlite/read-only.ts";
import { schemaOf } from "../../src/store/sqlite/schema.ts";
import { tempDir } from "../support/process.ts";
import { SEALS } from "../support/seals.ts";

let root: ReturnType<typeof tempDir>;
/** A name with every character that has a meaning in a URI. */
let folder: string;
let path: string;
let db: SqliteDb;
let isOpen: boolean;

beforeEach(async () => {
  root = tempDir();
  folder = join(root.path, "a b?c#d%41é&x=1");
  mkdirSync(folder);
  path = join(folder, "gatehouse.db");
  start();
  await note("one");
});

afterEach(async () => {
  await stop();
  root.remove();
});

function start(): void {
  db = openSqlite(path, { seals: SEALS });
  isOpen = true;
}

async function stop(): Promise<void> {
  if (isOpen) await db.close();
  isOpen = false;
}

async function note(key: string): Promise<void> {
  await db.run("INSERT INTO meta (key, value) VALUES ($1, '')", [key]);
}

const KEYS = "SELECT key FROM meta WHERE key NOT IN ('ready', 'seal_key') ORDER BY key";

function keysIn(file: string): string[] {
  const database = openReadOnly(file);
  try {
    return [...database.rows<{ key: string }>(KEYS)].map(({ key }) => key);
  } finally {
    database.close();
  }
}

/** Names, bytes and times of everything in a folder, and the folder's own time. */
function everythingIn(directory: string): unknown[] {
  const files = readdirSync(directory).sort();
  return [
    statSync(directory).mtimeMs,
    ...files.map((name) => {
      const file = join(directory, name);
      return [name, statSync(file).mtimeMs, readFileSync(file).toString("base64")];
    }),
  ];
}

/** Copies some of the files as they are now, which is how a killed process leaves them. */
function copyWith(...endings: readonly string[]): string {
  const copied = join(root.path, "copy");
  mkdirSync(copied, { recursive: true });
  for (const ending of endings) cpSync(`${path}${ending}`, join(copied, `gatehouse.db${ending}`));
  return join(copied, "gatehouse.db");
}

describe("leaves every file unchanged, and sees committed data:", () => {
  test("no server has it open", async () => {
    await stop();
    const before = everythingIn(folder);
    expect(keysIn(path)).toEqual(["one"]);
    expect(everythingIn(folder)).toEqual(before);
    expect(readdirSync(folder)).toEqual(["gatehouse.db"]);
  });

  test.each([
    ["its process died", ["", "-wal", "-shm"]],
    ["it was copied with its log, and without the log's index", ["", "-wal"]],
  ])("%s", (_, endings) => {
    const copied = copyWith(...endings);
    const before = everythingIn(join(root.path, "copy"));
    expect(keysIn(copied)).toEqual(["one"]);
    expect(everythingIn(join(root.path, "copy"))).toEqual(before);
  });

  test.each([
    ["its process died when the log was empty", ["", "-shm"]],
    ["it was copied with an empty log", [""]],
  ])("%s", async (_, endings) => {
    await db.forget();
    const copied = copyWith(...endings);
    writeFileSync(`${copied}-wal`, "");
    const before = everythingIn(join(root.path, "copy"));
    expect(keysIn(copied)).toEqual(["one"]);
    expect(everythingIn(join(root.path, "copy"))).toEqual(before);
  });

  test("it is a link to a file that a server writes to", () => {
    const link = join(root.path, "link.db");
    symlinkSync(path, link);
    expect(keysIn(link)).toEqual(["one"]);
  });

  test("a server writes to it", () => {
    expect(keysIn(path)).toEqual(["one"]);
    expect(readdirSync(folder).sort()).toEqual(["gatehouse.db", "gatehouse.db-shm", "gatehouse.db-wal"]);
  });
});

describe("while others write,", () => {
  test("next to a server it reads one snapshot, and reports that there is more", async () => {
    const database = openReadOnly(path);
    await note("two");
    expect([...database.rows<{ key: string }>(KEYS)]).toEqual([{ key: "one" }]);
    expect({ isShared: database.isShared, hasChanged: database.hasChanged() }).toEqual({
      isShared: true,
      hasChanged: true,
    });
    database.close();
    expect(keysIn(path)).toEqual(["one", "two"]);
    await note("three");
  });

  test("if no server ran when it began, it reports that it may not have read one snapshot", async () => {
    await stop();
    const database = openReadOnly(path);
    expect({ isShared: database.isShared, hasChanged: database.hasChanged() }).toEqual({
      isShared: false,
      hasChanged: false,
    });
    start();
    expect(database.hasChanged()).toBe(true);
    database.close();
  });
});

describe("unreadable data is reported, and whether it is damaged:", () => {
  test.each([
    ["a file that is not a database", (file: string) => writeFileSync(file, "hello".repeat(1_000)), true],
    ["a folder", (file: string) => mkdirSync(file), false],
    ["nothing", () => {}, false],
  ])("%s", (_, make, isDamaged) => {
    const file = join(root.path, "other.db");
    make(file);
    let failed: unknown;
    try {
      openReadOnly(file).close();
    } catch (error) {
      failed = error;
    }
    expect(failed).toBeInstanceOf(DatabaseUnreadable);
    expect(failed).toMatchObject({ isDamaged });
  });

  test("a page that was overwritten", async () => {
    await stop();
    const file = readFileSync(path);
    file.fill(7, 8_192, 16_384);
    writeFileSync(path, file);
    const database = openReadOnly(path);
    const tables = database.schema().flatMap(({ type, name }) => (type === "table" ? [name] : []));
    expect(() => tables.flatMap((table) => database.integrityProblems(table))).toThrow(DatabaseUnreadable);
    database.close();
  });
});

test("several can iterate over the same rows at once, and one that stops early can be closed", async () => {
  await note("two");
  const database = openReadOnly(path);
  const [first, second] = [database.rows<{ key: string }>(KEYS), database.rows<{ key: string }>(KEYS)];
  expect([first.next().value, second.next().value, first.next().value, second.next().value]).toEqual([
    { key: "one" },
    { key: "one" },
    { key: "two" },
    { key: "two" },
  ]);
  const third = database.rows<{ key: string }>(KEYS);
  third.next();
  for (const rows of [first, second, third]) rows.return();
  expect(database.get("SELECT COUNT(*) AS n FROM meta WHERE key = $1", ["two"])).toEqual({ n: 1 });
  database.close();
});

test("nothing can be written through it, and it names its file", () => {
  const database = openReadOnly(path);
  expect(() => database.get("DELETE FROM meta RETURNING key")).toThrow();
  expect([database.isOurs, database.schemaVersion]).toEqual([true, SCHEMA_VERSION]);
  expect(() => database.integrityProblems("meta; DROP TABLE meta")).toThrow(TypeError);
  expect(database.integrityProblems("meta")).toEqual([]);
  expect(database.schema()).toEqual(schemaOf(NEWEST_SCHEMA));
  database.close();
});

test("each version's schema extends the previous one", () => {
  const names = (version: number) => schemaOf(version).map(({ name }) => name);
  for (let version = 1; version < NEWEST_SCHEMA; version++) {
    expect(names(version + 1)).toEqual(expect.arrayContaining(names(version)));
  }
});
