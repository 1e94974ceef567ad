/** Transactions that arrive while another one of their queue waits for its ledger's lock, which another node has. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Db, Tx } from "../../../src/store/db.ts";
import { openPostgres } from "../../../src/store/postgres/open.ts";
import { createDatabase, missingPostgres, type TestDatabase } from "../../support/postgres/database.ts";
import { until } from "../../support/until.ts";

describe.skipIf(missingPostgres !== undefined)("transactions that arrive while a lock is waited for", () => {
  let database: TestDatabase;
  let db: Db;
  let other: Db;

  beforeEach(async () => {
    database = await createDatabase();
    [db, other] = [await openPostgres({ url: database.url }), await openPostgres({ url: database.url })];
    await db.run("CREATE TABLE t (k BIGINT NOT NULL PRIMARY KEY)");
  });

  afterEach(async () => {
    await db.close();
    await other.close();
    await database.drop();
  });

  /** @returns the id of the transaction that inserts the key */
  async function insert(tx: Tx, k: number): Promise<string> {
    tx.write("INSERT INTO t (k) VALUES ($1)", [k]);
    const row = await tx.get<{ id: string }>("SELECT pg_current_xact_id()::text AS id");
    return row?.id ?? "";
  }

  /** Locks the ledger on the other node. @returns lets it go */
  async function holdLock(): Promise<() => Promise<void>> {
    const held = Promise.withResolvers<void>();
    const locked = Promise.withResolvers<void>();
    const holding = other.tx(1, async () => {
      locked.resolve();
      await held.promise;
    });
    await locked.promise;
    return () => {
      held.resolve();
      return holding;
    };
  }

  /** Begins one transaction, and others once it waits for the lock. Then lets them go on. */
  async function whileLocked<T>(
    first: (tx: Tx) => Promise<T>,
    later: readonly ((tx: Tx) => Promise<T>)[],
  ): Promise<PromiseSettledResult<T>[]> {
    const release = await holdLock();
    const begun = [db.tx(1, first)];
    const waiting =
      "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    await until(async () => (await database.query(waiting)).length === 1);
    for (const work of later) begun.push(db.tx(1, work));
    const all = Promise.allSettled(begun);
    // Each was submitted by now, and none has begun.
    await release();
    return all;
  }

  const keys = async () => (await db.all<{ k: number }>("SELECT k FROM t ORDER BY k")).map(({ k }) => k);

  test("are committed with it, each once", async () => {
    const ids = await whileLocked(
      (tx) => insert(tx, 1),
      [2, 3, 4].map((k) => (tx: Tx) => insert(tx, k)),
    );
    expect(ids[0]).toMatchObject({ status: "fulfilled" });
    expect(new Set(ids.map((id) => JSON.stringify(id))).size).toBe(1);
    expect(await keys()).toEqual([1, 2, 3, 4]);
  });

  test("fail by themselves if they throw, also after a write", async () => {
    const failed = new Error("mine");
    const results = await whileLocked(
      (tx) => insert(tx, 1),
      [
        async (tx) => {
          await insert(tx, 2);
          throw failed;
        },
        (tx) => insert(tx, 3),
        // A statement that fails undoes all, and each runs alone.
        (tx) => insert(tx, 1),
        (tx) => insert(tx, 4),
      ],
    );
    expect(results.map(({ status }) => status)).toEqual([
      ...["fulfilled", "rejected", "fulfilled", "rejected", "fulfilled"],
    ] as PromiseSettledResult<string>["status"][]);
    expect(results[1]).toMatchObject({ reason: failed });
    expect(await keys()).toEqual([1, 3, 4]);
  });

  test("are refused with it once it has waited for too long", async () => {
    await db.close();
    db = await openPostgres({ url: database.url, timeouts: { lockMs: 300 } });
    const release = await holdLock();
    const all = await Promise.allSettled(
      Array.from({ length: 60 }, (_, k) => db.tx(1, (tx) => insert(tx, k))),
    );
    // The same refusal for all: one after the other, each would have waited for its own.
    const reasons = all.map((each) => (each.status === "rejected" ? each.reason : undefined));
    expect(reasons[0]).toMatchObject({ name: "StoreUnavailable" });
    expect(new Set(reasons).size).toBe(1);
    await release();
  });
});
