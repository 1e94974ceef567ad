/** A write of our own that fails on a full disk is never taken for another program's commit, and hides none. */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { openSqlite, type SqliteDb } from "../../src/store/sqlite/open.ts";
import { SEALS } from "../support/seals.ts";
import { type SmallDisk, smallDisk } from "../support/small-disk.ts";
import { outcomes } from "./support.ts";

const PART = "x".repeat(1_000_000);

let disk: SmallDisk;
let path: string;
let db: SqliteDb;
beforeEach(async () => {
  disk = smallDisk();
  path = join(disk.path, "gatehouse.db");
  db = openSqlite(path, { seals: SEALS });
  await write(1);
});
afterEach(async () => {
  await db.close();
  disk.remove();
});

/** One transaction with this many megabytes. */
const write = (parts: number, name = "part") =>
  db.tx(1, async (tx) => {
    for (let part = 0; part < parts; part++) {
      await tx.run(
        "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = $2",
        [`${name} ${part}`, PART],
      );
    }
    return "written";
  });

/** Work that fails on a full disk, in megabytes. The cache of the writer takes 16. */
const FAILING: [name: string, work: () => Promise<unknown>][] = [
  ["a small transaction", () => write(2)],
  ["a transaction that almost fills the cache", () => write(15)],
  ["a transaction beyond the cache", () => write(20)],
  ["large transactions that share a group", () => Promise.all([write(9), write(9, "other")])],
  ["rewriting the file", () => db.rewrite(1 << 30)],
];

describe("on a full disk", () => {
  test.each(FAILING)("%s fails, is not reported, and can be repeated once there is room", async (_, work) => {
    disk.fill();
    for (let times = 0; times < 3; times++) {
      expect(await outcomes([work().then(() => "done")])).toEqual(["StoreUnavailable"]);
      expect(await db.disturbances()).toEqual([]);
    }
    disk.free();
    expect(await outcomes([write(1)])).toEqual(["written"]);
    expect(await db.disturbances()).toEqual([]);
  });

  test.each(FAILING)("%s that fails hides no commit of another program", async (_, work) => {
    disk.fill();
    await outcomes([work()]);
    disk.free();
    const foreign = new Database(path);
    foreign.run("INSERT INTO meta (key, value) VALUES ('foreign', '')");
    foreign.close();
    expect(await outcomes([write(1)])).toEqual(["StoreUnavailable"]);
    expect(await db.disturbances()).toEqual([{ kind: "foreign_write", commits: 1 }]);
  });
});
