import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { closeSync, openSync, readdirSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Db } from "../../src/store/db.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { tempDir } from "../support/process.ts";
import { SEALS } from "../support/seals.ts";
import { outcomes } from "./support.ts";

let directory: ReturnType<typeof tempDir>;
let db: Db;

beforeEach(() => {
  directory = tempDir();
  db = openSqlite(join(directory.path, "gatehouse.db"), { seals: SEALS });
});

afterEach(async () => {
  await db.close();
  directory.remove();
});

const keep = (seq: number, body: string) =>
  db.run(
    "INSERT INTO payloads (workspace_id, seq, kind, salt, body, created_at) VALUES (1, $1, 'input', x'', $2, 0)",
    [seq, body],
  );

describe("the writer", () => {
  test.each([
    ["synchronous", 2],
    ["secure_delete", 1],
    ["recursive_triggers", 1],
    ["foreign_keys", 1],
    ["trusted_schema", 0],
    ["busy_timeout", 0],
  ])("has PRAGMA %s = %d", async (name, value) => {
    const row = await db.tx(1, (tx) => tx.get<Record<string, number>>(`PRAGMA ${name}`));
    expect(Object.values(row ?? {})).toEqual([value]);
  });

  test("uses a write-ahead log", async () => {
    expect(await db.tx(1, (tx) => tx.get("PRAGMA journal_mode"))).toEqual({ journal_mode: "wal" });
  });

  test("enforces foreign keys", async () => {
    const orphan = db.run("INSERT INTO task_events VALUES (1, 'task_0', 1, 1, x'')");
    expect((await outcomes([orphan]))[0]).toContain("FOREIGN KEY constraint failed");
  });

  test("refuses writable_schema: the file's own definitions can't be edited through it", async () => {
    await db.tx(1, (tx) => tx.get("PRAGMA writable_schema = ON"));
    const edit = db.run("UPDATE sqlite_schema SET sql = '' WHERE name = 'ledger_no_update'");
    expect((await outcomes([edit]))[0]).toContain("may not be modified");
  });

  test("overwrites deleted data in the file, and once closed leaves none in a log", async () => {
    const secret = "the-cellar-key-is-under-the-third-stone";
    await keep(1, secret.repeat(50));
    await db.run("DELETE FROM payloads");
    await db.close();
    for (const name of readdirSync(directory.path)) {
      expect(readFileSync(join(directory.path, name)).includes(secret)).toBe(false);
    }
    db = openSqlite(join(directory.path, "gatehouse.db"), { seals: SEALS });
  });
});

describe("the reader", () => {
  test("waits only briefly inside SQLite, where it blocks the event loop", async () => {
    expect(Object.values((await db.get<Record<string, number>>("PRAGMA busy_timeout")) ?? {})).toEqual([20]);
  });

  test("reports an unavailable store if the engine cannot read, and passes on its own faults unchanged", async () => {
    const path = join(directory.path, "gatehouse.db");
    for (let seq = 1; seq < 200; seq++) await keep(seq, "x".repeat(3_000));
    await db.close();
    const page = 4096;
    const size = readFileSync(path).length;
    db = openSqlite(path, { seals: SEALS });
    // Everything except the schema's first page is overwritten, as a failing disk might do.
    const file = openSync(path, "r+");
    for (let at = page; at < size; at += page) writeSync(file, Buffer.alloc(page, 0xff), 0, page, at);
    closeSync(file);
    expect(await outcomes([db.all("SELECT body FROM payloads")])).toEqual(["StoreUnavailable"]);
    expect((await outcomes([db.all("SELECT nonsense FROM meta")]))[0]).toContain("no such column");
  });

  test("cannot write, and cannot be made to", async () => {
    await db.get("PRAGMA query_only = OFF");
    expect((await outcomes([db.all("DELETE FROM meta")]))[0]).toContain("readonly database");
  });

  test("releases what it has read: it sees the next commit, and the log can be written back", async () => {
    await keep(1, "a");
    await keep(2, "b");
    // There are more rows than this reads. A statement left open would keep the reader at this moment.
    expect(await db.get("SELECT seq FROM payloads ORDER BY seq")).toEqual({ seq: 1 });
    await keep(3, "c");
    expect(await db.get("SELECT COUNT(*) AS n FROM payloads")).toEqual({ n: 3 });
    await db.close();
    expect(readdirSync(directory.path)).toEqual(["gatehouse.db"]);
    db = openSqlite(join(directory.path, "gatehouse.db"), { seals: SEALS });
  });
});

describe("texts are returned unchanged", () => {
  test.each([
    ["empty", "", ""],
    ["a zero inside", "a\0b", "a\0b"],
    ["beyond the basic plane", "🚪ünï\u2028", "🚪ünï\u2028"],
    ["half a surrogate pair, which UTF-8 cannot represent", "a\ud800b", "a\ufffdb"],
    ["a dollar and digits that are not a parameter", "$1 $2", "$1 $2"],
  ])("%s", async (_, given, kept) => {
    await keep(1, given);
    expect(await db.get("SELECT body FROM payloads")).toEqual({ body: kept });
  });
});

test("parameters are numbered: one may be used twice, and out of order", async () => {
  expect(await db.get("SELECT $2 || $1 || $2 AS text", ["a", "b"])).toEqual({ text: "bab" });
});

test("more different statements than the cache holds still run", async () => {
  for (let index = 0; index < 600; index++)
    expect(await db.get(`SELECT ${index} AS n`)).toEqual({ n: index });
});

test("closing waits for requested work, and refuses later work", async () => {
  const jobs = Array.from({ length: 300 }, (_, index) => keep(index, "x"));
  const closed = db.close();
  expect(await outcomes(jobs)).toEqual(Array(300).fill(1));
  await closed;
  expect(await outcomes([keep(999, "late")])).toEqual(["StoreUnavailable"]);
  db = openSqlite(join(directory.path, "gatehouse.db"), { seals: SEALS });
  expect(await db.get("SELECT COUNT(*) AS n FROM payloads")).toEqual({ n: 300 });
});
