/**
 * The connection is lost during a commit. Whatever the server has done, each accepted transaction is there exactly
 * once.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { Db } from "../../../src/store/db.ts";
import { openPostgres } from "../../../src/store/postgres/open.ts";
import { createDatabase, missingPostgres, type TestDatabase } from "../../support/postgres/database.ts";
import { startProxy, type TestProxy } from "../../support/postgres/proxy.ts";
import { outcomes } from "../support.ts";

/** As the message that ends a transaction has it. Its beginning names an isolation level, READ COMMITTED. */
const COMMIT = "COMMIT\0";

describe.skipIf(missingPostgres !== undefined)("if the connection is lost during a commit,", () => {
  let database: TestDatabase;
  let proxy: TestProxy;
  let db: Db;

  beforeAll(async () => {
    database = await createDatabase();
    proxy = await startProxy(database.url);
  });

  beforeEach(async () => {
    db = await openPostgres({ url: proxy.url });
    await db.run("DROP TABLE IF EXISTS t");
    await db.run("CREATE TABLE t (k BIGINT, v BIGINT)");
  });

  afterEach(() => db.close());

  afterAll(async () => {
    await proxy.close();
    await database.drop();
  });

  /** A transaction that would be there twice if it were committed twice. */
  const add = (k: number, told: string[] = [], store = db) =>
    store.tx(1, async (tx) => {
      tx.onCommit(() => told.push(`${k} lasts`));
      tx.onRollback(() => told.push(`${k} is undone`));
      tx.write("INSERT INTO t (k, v) VALUES ($1, 1)", [k]);
      return k;
    });
  const keys = async () =>
    (await database.query<{ k: string }>("SELECT k FROM t ORDER BY k")).map(({ k }) => Number(k));
  const fences = async () => (await database.query("SELECT 1 FROM commit_marks WHERE fenced")).length;

  test("and the server did not receive COMMIT, the transaction is repeated", async () => {
    const told: string[] = [];
    proxy.loseAt(COMMIT, "request");
    expect(await outcomes([add(1, told), add(2, told)])).toEqual([1, 2]);
    expect(told).toEqual(["2 is undone", "1 is undone", "1 lasts", "2 lasts"]);
    expect(await keys()).toEqual([1, 2]);
  });

  test("and only its answer is lost, the transaction is not repeated", async () => {
    const told: string[] = [];
    proxy.loseAt(COMMIT, "answer");
    expect(await outcomes([add(1, told), add(2, told)])).toEqual([1, 2]);
    expect(told).toEqual(["1 lasts", "2 lasts"]);
    expect(await keys()).toEqual([1, 2]);
  });

  test("and the server receives it after the transaction was repeated, only one of them is committed", async () => {
    const before = await fences();
    // A new store sends the text of each statement, in which the proxy finds the place. The session has not received the
    // mark, so settling does not wait for it.
    const fresh = await openPostgres({ url: proxy.url });
    proxy.loseAt("INSERT INTO commit_marks", "late");
    const job = fresh.tx(null, async (tx) => tx.write("INSERT INTO t (k, v) VALUES (1, 1)"));
    expect(await outcomes([job])).toEqual([undefined]);
    expect(await keys()).toEqual([1]);
    await proxy.deliver();
    expect(await keys()).toEqual([1]);
    expect(await fences()).toBe(before + 1);
    await fresh.close();
  });

  test("and its session keeps the lock of the ledger's end, the server ends that session", async () => {
    const fresh = await openPostgres({ url: proxy.url, timeouts: { idleMs: 100, lockMs: 15_000 } });
    proxy.loseAt("INSERT INTO commit_marks", "late");
    expect(await outcomes([add(1, [], fresh), add(2, [], fresh)])).toEqual([1, 2]);
    await proxy.deliver();
    expect(await keys()).toEqual([1, 2]);
    await fresh.close();
  });

  test("on all connections at once, settling does not wait for a free one", async () => {
    const small = await openPostgres({
      url: proxy.url,
      connections: { writers: 1 },
      timeouts: { queueMs: 60_000 },
    });
    proxy.loseAt(COMMIT, "answer");
    expect(await outcomes([add(1, [], small)])).toEqual([1]);
    proxy.loseAt(COMMIT, "request");
    expect(await outcomes([add(2, [], small)])).toEqual([2]);
    expect(await keys()).toEqual([1, 2]);
    await small.close();
  });

  test("again and again, every transaction is there exactly once", async () => {
    for (let k = 0; k < 60; k += 3) {
      proxy.loseAt(COMMIT, k % 2 === 0 ? "answer" : "request");
      expect(await outcomes([add(k), add(k + 1), add(k + 2)])).toEqual([k, k + 1, k + 2]);
    }
    expect(await keys()).toEqual([...Array(60).keys()]);
  });

  test("marks do not accumulate", async () => {
    const owned = async () => {
      const [newest] = await database.query<{ n: string }>(
        "SELECT COUNT(*) AS n FROM commit_marks WHERE NOT fenced GROUP BY owner ORDER BY MAX(created_at) DESC LIMIT 1",
      );
      return Number(newest?.n);
    };
    for (let k = 0; k < 20; k++) await add(k);
    expect(await owned()).toBe(1);
    // One that appends to no ledger does not see what others commit after it has begun.
    const begun = Promise.withResolvers<void>();
    const resume = Promise.withResolvers<void>();
    const slow = db.tx(null, async (tx) => {
      await tx.all("SELECT k FROM t");
      begun.resolve();
      await resume.promise;
      await tx.run("INSERT INTO t (k) VALUES (0)");
    });
    await begun.promise;
    for (let k = 0; k < 3; k++) await add(k);
    resume.resolve();
    await slow;
    for (let k = 0; k < 4; k++) await db.tx(null, (tx) => tx.run("INSERT INTO t (k) VALUES ($1)", [k]));
    expect(await owned()).toBe(1);
  });
});

describe.skipIf(missingPostgres !== undefined)("if the database is away after a lost commit,", () => {
  test("the caller learns that the outcome is unknown, and nothing is repeated", async () => {
    const database = await createDatabase();
    const proxy = await startProxy(database.url);
    const db = await openPostgres({ url: proxy.url, timeouts: { settleMs: 1, connectMs: 1_500 } });
    await db.run("CREATE TABLE t (k BIGINT)");
    let runs = 0;
    proxy.loseAt(COMMIT, "answer");
    const job = db.tx(1, async (tx) => {
      runs += 1;
      tx.write("INSERT INTO t VALUES (1)");
    });
    const settled = outcomes([job.catch((error: Error) => error.name + error.message)]);
    await proxy.lost;
    proxy.swallow();
    proxy.cut();
    expect((await settled)[0]).toContain("its outcome could not be determined");
    expect(runs).toBe(1);
    proxy.resume();
    proxy.cut();
    expect(await db.all("SELECT k FROM t")).toEqual([{ k: 1 }]);
    await db.close();
    await proxy.close();
    await database.drop();
  });
});
