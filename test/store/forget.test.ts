/** Deleted data leaves the database's file and its log, even while others read. */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { openSqlite, type SqliteDb } from "../../src/store/sqlite/open.ts";
import { tempDir } from "../support/process.ts";
import { SEALS } from "../support/seals.ts";
import { outcomes } from "./support.ts";

const SECRET = "the-heron-keeps-the-third-key";

let directory: ReturnType<typeof tempDir>;
let path: string;
let db: SqliteDb;

beforeEach(async () => {
  directory = tempDir();
  path = join(directory.path, "gatehouse.db");
  db = openSqlite(path, { seals: SEALS });
  await db.run(
    "INSERT INTO payloads (workspace_id, seq, kind, salt, body, created_at) VALUES (1, 1, 'input', x'', $1, 0)",
    [SECRET.repeat(400)],
  );
});

afterEach(async () => {
  await db.close();
  directory.remove();
});

const holders = () =>
  readdirSync(directory.path).filter((name) => readFileSync(join(directory.path, name)).includes(SECRET));

test("forgetting empties the log, and the store continues", async () => {
  await db.run("DELETE FROM payloads");
  expect(holders()).not.toEqual([]);
  expect(await db.forget()).toBe(true);
  expect(holders()).toEqual([]);
  expect(await db.run("UPDATE meta SET value = 'x' WHERE key = 'ready'")).toBe(1);
});

test("forgetting waits for a busy reader", async () => {
  const reader = new Database(path, { readonly: true });
  reader.exec("BEGIN");
  reader.query("SELECT count(*) FROM payloads").get();
  await db.run("DELETE FROM payloads");
  const forgetting = db.forget();
  // Others write at the same time.
  for (let n = 0; n < 20; n++) await db.run("UPDATE meta SET value = $1 WHERE key = 'ready'", [String(n)]);
  reader.exec("COMMIT");
  expect(await forgetting).toBe(true);
  expect(holders()).toEqual([]);
  reader.close();
});

test("a reader that stays is reported, and blocks no writer", async () => {
  const reader = new Database(path, { readonly: true });
  reader.exec("BEGIN");
  reader.query("SELECT count(*) FROM payloads").get();
  await db.run("DELETE FROM payloads");
  expect(await db.forget()).toBe(false);
  expect(await db.run("UPDATE meta SET value = 'x' WHERE key = 'ready'")).toBe(1);
  reader.close();
  expect(await db.forget()).toBe(true);
  expect(holders()).toEqual([]);
});

test("a closed store refuses to forget, and leaves one file", async () => {
  await db.run("DELETE FROM payloads");
  await db.close();
  expect(await outcomes([db.forget()])).toEqual(["StoreUnavailable"]);
  expect(existsSync(`${path}-wal`)).toBe(false);
  expect(holders()).toEqual([]);
  db = openSqlite(path, { seals: SEALS });
});

test.skipIf(process.platform !== "linux")(
  "a large transaction leaves no copy of the previous content in another file",
  async () => {
    for (let seq = 2; seq < 300; seq++) {
      await db.run(
        "INSERT INTO payloads (workspace_id, seq, kind, salt, body, created_at) VALUES (1, $1, 'input', x'', $2, 0)",
        [seq, SECRET.repeat(300)],
      );
    }
    const open = await db.tx(1, async (tx) => {
      await tx.run("DELETE FROM payloads WHERE seq % 2 = 0");
      return readdirSync("/proc/self/fd").map(targetOf);
    });
    // SQLite's temporary files lose their name as soon as they are open.
    expect(open.filter((name) => name.includes("(deleted)") && name.includes("/tmp/#"))).toEqual([]);
    expect(open.filter((name) => name.includes("etilqs"))).toEqual([]);
  },
);

function targetOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return "";
  }
}

test("a small enough store is rewritten, with everything in it", async () => {
  await db.run("DELETE FROM payloads");
  await db.run("UPDATE meta SET value = 'kept' WHERE key = 'ready'");
  expect(await db.rewrite(1)).toBe(false);
  expect(await db.rewrite(1_000_000_000)).toBe(true);
  expect(holders()).toEqual([]);
  expect(await db.get("SELECT value FROM meta WHERE key = 'ready'")).toEqual({ value: "kept" });
  expect(await db.run("UPDATE meta SET value = 'on' WHERE key = 'ready'")).toBe(1);
});

test("a store that is briefly being written is rewritten afterwards", async () => {
  const writer = new Database(path);
  writer.exec("BEGIN IMMEDIATE");
  const rewriting = db.rewrite(1_000_000_000);
  await Bun.sleep(50);
  writer.exec("COMMIT");
  writer.close();
  expect(await rewriting).toBe(true);
});

test("a store that is being read is rewritten at the same time, and the log is emptied when the reader leaves", async () => {
  const reader = new Database(path, { readonly: true });
  reader.exec("BEGIN");
  expect(reader.query("SELECT count(*) AS n FROM payloads").get()).toEqual({ n: 1 });
  await db.run("DELETE FROM payloads");
  const rewriting = db.rewrite(1_000_000_000);
  await Bun.sleep(50);
  expect(reader.query("SELECT count(*) AS n FROM payloads").get()).toEqual({ n: 1 });
  reader.exec("COMMIT");
  reader.close();
  expect(await rewriting).toBe(true);
  expect(holders()).toEqual([]);
});
