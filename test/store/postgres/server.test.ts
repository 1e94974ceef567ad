/** The server itself is killed or frozen under load, and comes back. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { Db } from "../../../src/store/db.ts";
import { openPostgres } from "../../../src/store/postgres/open.ts";
import { type Cluster, startCluster } from "../../support/postgres/cluster.ts";
import { createDatabase, missingPrograms, type TestDatabase } from "../../support/postgres/database.ts";
import { outcomes } from "../support.ts";

if (missingPrograms !== undefined) console.warn(`POSTGRESQL IS NOT KILLED: ${missingPrograms}`);

describe.skipIf(missingPrograms !== undefined)("a store whose server", () => {
  let cluster: Cluster;
  let database: TestDatabase;
  let db: Db;

  beforeAll(async () => {
    cluster = await startCluster();
    database = await createDatabase(cluster.url);
  });

  beforeEach(async () => {
    const timeouts = { connectMs: 1_500, answerMs: 1_500, retryMs: 200, settleMs: 60_000 };
    db = await openPostgres({ url: database.url, timeouts });
    await db.run("DROP TABLE IF EXISTS t");
    await db.run("CREATE TABLE t (k BIGINT, v BIGINT)");
  });

  afterEach(() => db.close());
  afterAll(() => cluster.remove());

  const insert = (k: number) =>
    db.tx((k % 12) + 1, async (tx) => tx.write("INSERT INTO t (k) VALUES ($1)", [k]));
  const keys = async () =>
    (await database.query<{ k: string }>("SELECT k FROM t ORDER BY k")).map(({ k }) => Number(k));

  /** Inserts until `stop` is called. @returns what was accepted, and what was refused */
  function load(): { readonly accepted: number[]; readonly refused: number[]; stop(): Promise<void> } {
    const accepted: number[] = [];
    const refused: number[] = [];
    let next = 0;
    let isOn = true;
    const callers = Array.from({ length: 24 }, async () => {
      while (isOn) {
        const k = next++;
        const [outcome] = await outcomes([insert(k)]);
        if (outcome === undefined) accepted.push(k);
        else {
          refused.push(k);
          expect(outcome).toBe("StoreUnavailable");
        }
      }
    });
    return {
      accepted,
      refused,
      async stop() {
        isOn = false;
        await Promise.all(callers);
      },
    };
  }

  async function until(isTrue: () => boolean): Promise<void> {
    while (!isTrue()) await Bun.sleep(5);
  }

  test("is killed and started again keeps what it accepted, once, and nothing that it refused", async () => {
    const { accepted, stop } = load();
    for (let round = 0; round < 4; round++) {
      const before = accepted.length;
      await until(() => accepted.length > before + 50);
      await cluster.kill();
      // Some rounds leave it away for longer than anything is repeated.
      if (round % 2 === 0) expect(await outcomes([db.all("SELECT k FROM t")])).toEqual(["StoreUnavailable"]);
      await cluster.start();
    }
    const before = accepted.length;
    await until(() => accepted.length > before + 50);
    await stop();
    expect(await keys()).toEqual(accepted.toSorted((a, b) => a - b));
  });

  test("is away refuses reads and writes, and works again afterwards by itself", async () => {
    await insert(1);
    await cluster.kill();
    const refused = [
      db.all("SELECT k FROM t"),
      db.urgent.get("SELECT k FROM t"),
      insert(2),
      db.urgent.run("SELECT 1"),
    ];
    expect(await outcomes(refused)).toEqual(refused.map(() => "StoreUnavailable"));
    await cluster.start();
    expect(await db.all("SELECT k FROM t")).toEqual([{ k: 1 }]);
    expect(await insert(3).then(() => keys())).toEqual([1, 3]);
  });

  test.each([
    ["away", () => cluster.kill(), () => cluster.start()],
    ["frozen", async () => cluster.freeze(), async () => cluster.thaw()],
  ])("is %s can be closed, and what waits is refused", async (_, stop, resume) => {
    const timeouts = { connectMs: 1_500, answerMs: 1_500, retryMs: 100, settleMs: 200 };
    const closing = await openPostgres({ url: database.url, timeouts });
    await closing.tx(1, (tx) => tx.run("INSERT INTO t (k) VALUES (1)"));
    await closing.all("SELECT k FROM t");
    await stop();
    const waiting = [1, 2, null].map((w) => closing.tx(w, (tx) => tx.run("INSERT INTO t (k) VALUES (2)")));
    const settled = outcomes([...waiting, closing.all("SELECT k FROM t")]);
    await closing.close();
    expect(await settled).toEqual(Array(4).fill("StoreUnavailable"));
    await resume();
    expect(await db.all("SELECT k FROM t")).toEqual([{ k: 1 }]);
  });

  test("is frozen refuses work after a while, and works again afterwards by itself", async () => {
    const { accepted, refused, stop } = load();
    await until(() => accepted.length > 50);
    cluster.freeze();
    // Settling is given a minute, so nothing is unknown: until then, work that was to be committed waits.
    const reading = outcomes([db.all("SELECT k FROM t")]);
    expect(await reading).toEqual(["StoreUnavailable"]);
    cluster.thaw();
    const before = accepted.length;
    await until(() => accepted.length > before + 50);
    await stop();
    expect(await keys()).toEqual(accepted.toSorted((a, b) => a - b));
    expect(new Set(accepted).isDisjointFrom(new Set(refused))).toBe(true);
  });
});
