/** What is committed, and when it is on the disk: who waits for the sync, and what a failed one ends. */

import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { copyFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { CommitSync } from "../../src/store/sqlite/commit-sync.ts";
import type { SqliteDb } from "../../src/store/sqlite/open.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { WatchedFile } from "../../src/store/sqlite/watched-file.ts";
import { tempDir } from "../support/process.ts";
import { outcomes } from "./support.ts";

let directory: ReturnType<typeof tempDir>;
let path: string;
let db: SqliteDb;
/** The files that are being synced, in order. Each sync waits for `permit`. */
let syncs: string[];
let permit: () => Promise<void>;
let spy: { mockRestore(): void };

beforeEach(() => {
  directory = tempDir();
  path = join(directory.path, "gatehouse.db");
  db = openSqlite(path);
  [syncs, permit] = [[], async () => {}];
  const sync = WatchedFile.prototype.sync;
  spy = spyOn(WatchedFile.prototype, "sync").mockImplementation(async function (this: WatchedFile) {
    syncs.push(this.name);
    await permit();
    await sync.call(this);
  });
});
afterEach(async () => {
  spy.mockRestore();
  await db.close();
  directory.remove();
});

const note = (key: string, value = "x") =>
  db.run(
    "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    [key, value],
  );
const noted = (key: string) => db.get<{ value: string }>("SELECT value FROM meta WHERE key = $1", [key]);
const turn = () => new Promise((resolve) => setImmediate(resolve));

test("no writer is told of a commit before it is on the disk, no read sees it, and no other group begins", async () => {
  const disk = Promise.withResolvers<void>();
  permit = () => disk.promise;
  const events: string[] = [];
  const first = db
    .tx(async (tx) => {
      tx.onCommit(() => void events.push("reported"));
      await tx.run("INSERT INTO meta (key, value) VALUES ('a', '1')");
    })
    .then(() => events.push("first resolved"));
  while (syncs.length === 0) await turn();
  const second = db.tx(async () => void events.push("second began"));
  for (let count = 0; count < 20; count++) {
    expect(await noted("a")).toBeUndefined();
    await turn();
  }
  expect(events).toEqual([]);
  disk.resolve();
  await first;
  expect(await noted("a")).toEqual({ value: "1" });
  await second;
  expect(events).toEqual(["reported", "first resolved", "second began"]);
});

test("a commit that fails releases the reads", async () => {
  await db.tx((tx) => tx.run("INSERT INTO meta (key, value) VALUES ('a', '1')"));
  const commit = spyOn(CommitSync.prototype, "holdReads").mockImplementationOnce(() => {
    throw new Error("SQLITE_BUSY");
  });
  expect(await outcomes([note("b")])).toEqual(["StoreUnavailable"]);
  commit.mockRestore();
  await note("c", "3");
  expect([await noted("b"), await noted("c")]).toEqual([undefined, { value: "3" }]);
});

describe("a sync that fails", () => {
  beforeEach(async () => {
    await note("before", "1");
    permit = () => Promise.reject(new Error("EIO"));
  });

  test("refuses every transaction of its group, and undoes what they did in memory", async () => {
    let state = "before";
    const changing = db.tx(async (tx) => {
      state = "after";
      tx.onRollback(() => {
        state = "before";
      });
      tx.onCommit(() => {
        state = "committed";
      });
    });
    expect(await outcomes([changing, note("other")])).toEqual(["StoreUnavailable", "StoreUnavailable"]);
    expect(state).toBe("before");
  });

  test("ends all writing, even once the disk works again, and says so", async () => {
    await outcomes([note("lost")]);
    permit = async () => {};
    expect(await outcomes([note("later"), db.tx(async () => {}, { whileRefused: true })])).toEqual([
      "StoreUnavailable",
      "StoreUnavailable",
    ]);
    expect(syncs.filter((name) => name === "log")).toHaveLength(2);
    expect(await db.disturbances()).toMatchObject([{ kind: "not_on_disk" }]);
    expect([db.mustReopen, await db.disturbances()]).toEqual([true, []]);
    expect(await noted("before")).toEqual({ value: "1" });
  });
});

describe("the log", () => {
  /** 50 pages. SQLite writes only pages that change. */
  const long = () => randomBytes(100_000).toString("hex");
  const sizeOfLog = () => statSync(`${path}-wal`).size;

  test("is copied into the database once it is long, and begins anew", async () => {
    for (let count = 0; count < 400; count++) await note("long", long());
    expect(sizeOfLog()).toBeLessThan(400 * 50 * 4_096 * 0.2);
    const after = syncs.lastIndexOf("database");
    expect(after).toBeGreaterThan(0);
    // The next commit, which overwrites the log, waits for the database.
    for (const [index, name] of syncs.entries())
      if (name === "database") expect(syncs[index - 1]).toBe("log");
  });

  test("is copied once for each so many pages, not at each look, while a reader needs it", async () => {
    const reader = new Database(path, { readonly: true });
    reader.run("BEGIN");
    reader.query("SELECT * FROM meta").all();
    for (let count = 0; count < 200; count++) await note("long", long());
    const pages = sizeOfLog() / 4_096;
    reader.close();
    const copies = syncs.filter((name) => name === "database").length;
    expect(copies).toBeGreaterThan(0);
    expect(copies).toBeLessThanOrEqual(pages / 1_000);
  });

  test("and the database have every commit that was reported, whenever they are copied", async () => {
    for (let count = 0; count < 120; count++) {
      await note("count", `${count}`);
      await note("long", long());
      if (count % 10 !== 0) continue;
      const copy = join(directory.path, `copy-${count}.db`);
      copyFileSync(path, copy);
      copyFileSync(`${path}-wal`, `${copy}-wal`);
      const opened = new Database(copy);
      expect(opened.query("SELECT value FROM meta WHERE key = 'count'").get()).toEqual({ value: `${count}` });
      expect(opened.query("PRAGMA quick_check").values()).toEqual([["ok"]]);
      opened.close();
    }
  });
});
