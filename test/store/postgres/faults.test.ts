/** Connections end at any moment, and transactions of other nodes are in the way. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { Db, Tx } from "../../../src/store/db.ts";
import type { Timeouts } from "../../../src/store/postgres/limits.ts";
import { openPostgres } from "../../../src/store/postgres/open.ts";
import { createDatabase, missingPostgres, type TestDatabase } from "../../support/postgres/database.ts";
import { startProxy, type TestProxy } from "../../support/postgres/proxy.ts";
import { outcomes } from "../support.ts";

/** Ends all connections of stores to this database. */
const TERMINATE =
  "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'gatehouse' AND datname = current_database()";

describe.skipIf(missingPostgres !== undefined)("a store on PostgreSQL", () => {
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
    await db.run("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT NOT NULL)");
  });

  afterEach(async () => {
    proxy.resume();
    await db.close();
  });

  afterAll(async () => {
    await proxy.close();
    await database.drop();
  });

  const insert = (tx: Tx, k: number) => tx.run("INSERT INTO t (k, v) VALUES ($1, 0)", [k]);
  const keys = async () =>
    (await database.query<{ k: string }>("SELECT k FROM t ORDER BY k")).map(({ k }) => Number(k));

  /** Uses another store on the same database, as another node would. */
  async function onAnotherNode(use: (other: Db) => Promise<void>, timeouts: Partial<Timeouts> = {}) {
    const other = await openPostgres({ url: database.url, timeouts });
    try {
      await use(other);
    } finally {
      await other.close();
    }
  }

  describe("runs the work again", () => {
    const faults: readonly (readonly [string, () => Promise<unknown>])[] = [
      ["if the server ends its connections", () => database.query(TERMINATE)],
      ["if all its connections are cut", async () => proxy.cut()],
    ];

    test.each(faults)("%s between two statements", async (_, disturb) => {
      let runs = 0;
      const undone: number[] = [];
      const job = db.tx(1, async (tx) => {
        runs += 1;
        const run = runs;
        tx.onRollback(() => undone.push(run));
        await insert(tx, 1);
        if (run === 1) await disturb();
        await insert(tx, 2);
        return run;
      });
      expect(await outcomes([job])).toEqual([2]);
      expect(undone).toEqual([1]);
      expect(await keys()).toEqual([1, 2]);
    });

    test.each(faults)("%s while nothing runs, without failing a read either", async (_, disturb) => {
      await db.tx(1, (tx) => insert(tx, 1));
      await Promise.all([db.all("SELECT 1 AS one"), db.urgent.all("SELECT 1 AS one")]);
      await disturb();
      expect(await db.get("SELECT k FROM t")).toEqual({ k: 1 });
      expect(await db.urgent.get("SELECT k FROM t")).toEqual({ k: 1 });
      expect(await db.tx(1, (tx) => insert(tx, 2))).toBe(1);
    });

    test.each(faults)("%s while many statements are on their way", async (_, disturb) => {
      const patient = await openPostgres({ url: proxy.url, timeouts: { retryMs: 60_000 } });
      const disturbed = new Set<number>();
      const jobs = Array.from({ length: 300 }, (_each, k) =>
        patient.tx([1, 2, 3, null][k % 4] ?? null, async (tx) => {
          tx.write("INSERT INTO t (k, v) VALUES ($1, 0)", [k]);
          if (k % 50 !== 7 || disturbed.has(k)) return;
          disturbed.add(k);
          await disturb();
        }),
      );
      expect(await outcomes(jobs)).toEqual(jobs.map(() => undefined));
      expect(disturbed.size).toBe(6);
      expect(await keys()).toEqual([...jobs.keys()]);
      await patient.close();
    });
  });

  test("refuses work after several attempts that lose their connection, and keeps nothing of it", async () => {
    let runs = 0;
    const undone: number[] = [];
    const job = db.tx(1, async (tx) => {
      runs += 1;
      tx.onRollback(() => undone.push(runs));
      await insert(tx, 1);
      proxy.cut();
      await insert(tx, 2);
    });
    expect(await outcomes([job])).toEqual(["StoreUnavailable"]);
    expect(runs).toBeGreaterThan(1);
    expect(undone).toHaveLength(runs);
    expect(await keys()).toEqual([]);
    expect(await db.tx(1, (tx) => insert(tx, 3))).toBe(1);
  });

  describe("while nothing gets through, and no connection ends,", () => {
    beforeEach(async () => {
      await db.close();
      db = await openPostgres({
        url: proxy.url,
        timeouts: { connectMs: 1_500, answerMs: 1_500, retryMs: 200, settleMs: 300 },
      });
    });

    test("everything is refused, and succeeds afterwards", async () => {
      await db.tx(1, (tx) => insert(tx, 1));
      await Promise.all([db.all("SELECT 1 AS one"), db.urgent.all("SELECT 1 AS one")]);
      proxy.swallow();
      const refused = [
        db.all("SELECT k FROM t"),
        db.urgent.all("SELECT k FROM t"),
        db.tx(1, (tx) => insert(tx, 2)),
        db.tx(2, (tx) => insert(tx, 3)),
        db.run("DELETE FROM t"),
        db.urgent.run("DELETE FROM t"),
      ];
      expect(await outcomes(refused)).toEqual(refused.map(() => "StoreUnavailable"));
      proxy.resume();
      expect(await db.tx(1, (tx) => insert(tx, 4))).toBe(1);
      expect(await db.all("SELECT k FROM t ORDER BY k")).toEqual([{ k: 1 }, { k: 4 }]);
    });
  });

  describe("next to another node", () => {
    const increment = async (tx: Tx) => {
      const row = await tx.get<{ v: number }>("SELECT v FROM t WHERE k = 1");
      tx.write("UPDATE t SET v = $1 WHERE k = 1", [(row?.v ?? 0) + 1]);
    };

    test.each([
      ["in one workspace's order", 1],
      ["in the order of several workspaces", [3, 1]],
      ["in no workspace's order", null],
    ])("loses no update %s", async (_, workspaces) => {
      await db.tx(1, (tx) => insert(tx, 1));
      await onAnotherNode(async (other) => {
        const jobs = Array.from({ length: 100 }, (_each, k) =>
          (k % 2 === 0 ? db : other).tx(workspaces, increment),
        );
        expect(await outcomes(jobs)).toEqual(jobs.map(() => undefined));
      });
      expect(await database.query("SELECT v::int FROM t")).toEqual([{ v: 100 }]);
    });

    test("runs the work again that PostgreSQL ends because of a deadlock", async () => {
      await db.tx(1, (tx) => insert(tx, 1));
      await db.tx(1, (tx) => insert(tx, 2));
      const both = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
      let runs = 0;
      // Each has locked one row before it asks for the other's.
      const crosswise = (store: Db, first: number, second: number, mine: 0 | 1) =>
        store.tx(first, async (tx) => {
          runs += 1;
          await tx.run("UPDATE t SET v = v + 1 WHERE k = $1", [first]);
          both[mine].resolve();
          await both[mine === 0 ? 1 : 0].promise;
          await tx.run("UPDATE t SET v = v + 1 WHERE k = $1", [second]);
        });
      await onAnotherNode(async (other) => {
        await Promise.all([crosswise(db, 1, 2, 0), crosswise(other, 2, 1, 1)]);
      });
      expect(runs).toBe(3);
      expect(await database.query("SELECT v::int FROM t")).toEqual([{ v: 2 }, { v: 2 }]);
    });

    test("that keeps the ledger's end locked, refuses the work after a while and not before", async () => {
      const held = Promise.withResolvers<void>();
      const release = Promise.withResolvers<void>();
      const holder = db.tx(1, async (tx) => {
        await insert(tx, 1);
        held.resolve();
        await release.promise;
      });
      await held.promise;
      await onAnotherNode(
        async (other) => {
          expect(await outcomes([other.tx(1, (tx) => insert(tx, 2))])).toEqual(["StoreUnavailable"]);
          expect(await outcomes([other.tx(2, (tx) => insert(tx, 3))])).toEqual([1]);
        },
        { lockMs: 50 },
      );
      release.resolve();
      await holder;
      expect(await keys()).toEqual([1, 3]);
    });

    test("that is frozen within a transaction, gets its lock once the server has ended that", async () => {
      const patient = await openPostgres({ url: database.url, timeouts: { idleMs: 100 } });
      const held = Promise.withResolvers<void>();
      const release = Promise.withResolvers<void>();
      const frozen = patient.tx(1, async (tx) => {
        const rows = await tx.all("SELECT k FROM t");
        held.resolve();
        await release.promise;
        return (await insert(tx, 1 + rows.length)) + rows.length;
      });
      await held.promise;
      expect(await db.tx(1, (tx) => insert(tx, 1))).toBe(1);
      release.resolve();
      // It ran again, and saw what had been written in between.
      expect(await frozen).toBe(2);
      expect(await keys()).toEqual([1, 2]);
      await patient.close();
    });
  });

  describe("behind a pooler, which gives each transaction another session,", () => {
    test("statements without names are used once the server does not know one", async () => {
      const single = { writers: 1, readers: 1, urgent: 1 };
      const pooled = await openPostgres({ url: database.url, connections: single });
      const read = () => pooled.all("SELECT k FROM t ORDER BY k");
      await pooled.tx(1, (tx) => insert(tx, 1));
      await read();
      let runs = 0;
      const job = pooled.tx(1, async (tx) => {
        runs += 1;
        // As if the next statements met a session that has not prepared them.
        if (runs === 1) await tx.run("DEALLOCATE ALL");
        await insert(tx, 2);
      });
      expect(await outcomes([job])).toEqual([undefined]);
      expect(runs).toBe(2);
      // The other connections use no names either.
      await pooled.all("DEALLOCATE ALL");
      expect(await read()).toEqual([{ k: 1 }, { k: 2 }]);
      await pooled.close();
    });

    test("each transaction has its own settings, and leaves none in the session", async () => {
      const pooled = await openPostgres({
        url: database.url,
        directUrl: database.url,
        timeouts: { lockMs: 4_321 },
      });
      const settings = "SELECT current_setting('lock_timeout') AS lock";
      expect(await pooled.tx(1, (tx) => tx.get(settings))).toEqual({ lock: "4321ms" });
      expect(await pooled.tx(null, (tx) => tx.get(settings))).toEqual({ lock: "4321ms" });
      expect(await pooled.get(settings)).toEqual({ lock: "0" });
      await pooled.close();
    });
  });

  test("work for which no connection becomes free in time is refused, and is not repeated", async () => {
    const small = await openPostgres({
      url: database.url,
      timeouts: { queueMs: 50 },
      connections: { writers: 1 },
    });
    const held = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const holder = small.tx(1, async () => {
      held.resolve();
      await release.promise;
    });
    await held.promise;
    expect(await outcomes([small.tx(2, (tx) => insert(tx, 1))])).toEqual(["StoreUnavailable"]);
    expect(await small.all("SELECT k FROM t")).toEqual([]);
    release.resolve();
    await holder;
    expect(await small.tx(2, (tx) => insert(tx, 2))).toBe(1);
    await small.close();
  });

  test("a statement that takes too long is ended by the server, and is not repeated", async () => {
    await onAnotherNode(
      async (other) => {
        let runs = 0;
        const slow = other.tx(1, async (tx) => {
          runs += 1;
          await tx.all("SELECT pg_sleep(60)");
        });
        const read = other.all("SELECT pg_sleep(60)");
        expect(await outcomes([slow, read])).toEqual(["StoreUnavailable", "StoreUnavailable"]);
        expect(runs).toBe(1);
      },
      { statementMs: 50 },
    );
  });

  test("a number that is not exact is refused, and nothing else of its transaction is kept", async () => {
    for (const value of [2 ** 53, -(2 ** 53), Number.NaN, Number.POSITIVE_INFINITY]) {
      const careless = db.tx(1, async (tx) => {
        await insert(tx, 1);
        try {
          tx.write("INSERT INTO t (k, v) VALUES (2, $1)", [value]);
        } catch {
          // As if the work did not look.
        }
        await insert(tx, 3);
      });
      const [first, second] = await outcomes([careless, db.tx(1, async () => "done")]);
      expect(first).toContain("RangeError");
      expect(second).toBe("done");
    }
    expect((await outcomes([db.get("SELECT 9007199254740993 AS v")]))[0]).toContain("RangeError");
    expect((await outcomes([db.run("INSERT INTO t (k, v) VALUES (1, $1)", [1.5])]))[0]).toContain("bigint");
    expect(await keys()).toEqual([]);
  });

  test("after a failed statement, all that follow throw its error", async () => {
    await db.tx(1, (tx) => insert(tx, 1));
    const told: unknown[] = [];
    const stubborn = db.tx(1, async (tx) => {
      tx.write("INSERT INTO t (k, v) VALUES (1, 0)");
      // The first two are on their way before the failure is known.
      told.push(...(await outcomes([insert(tx, 2), tx.all("SELECT k FROM t"), insert(tx, 3)])));
      told.push(...(await outcomes([insert(tx, 4)])));
      await insert(tx, 5);
    });
    told.push(...(await outcomes([stubborn])));
    for (const each of told) expect(each).toContain("unique constraint");
    expect(told).toHaveLength(5);
    expect(await keys()).toEqual([1]);
  });

  test("a work that passes no error on does not commit", async () => {
    await db.tx(1, (tx) => insert(tx, 1));
    const careless = db.tx(1, async (tx) => {
      await insert(tx, 2);
      await outcomes([insert(tx, 1)]);
      return "all is well";
    });
    const [first, second] = await outcomes([careless, db.tx(1, (tx) => insert(tx, 3))]);
    expect(first).toContain("unique constraint");
    expect(second).toBe(1);
    expect(await keys()).toEqual([1, 3]);
  });
});
