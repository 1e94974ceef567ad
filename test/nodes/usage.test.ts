/** Statistics to which several nodes add at once. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { silentLog } from "../../src/base/log.ts";
import { recordUsage } from "../../src/gate/usage/counts.ts";
import type { UsageRecord } from "../../src/gate/usage/record.ts";
import { openUsageReports } from "../../src/gate/usage/report.ts";
import { UsageSlots } from "../../src/gate/usage/slots.ts";
import { UsageTally } from "../../src/gate/usage/tally.ts";
import type { Db } from "../../src/store/db.ts";
import { openPostgres } from "../../src/store/postgres/open.ts";
import { FakeClock } from "../support/clock.ts";
import { createDatabase, missingPostgres, type TestDatabase } from "../support/postgres/database.ts";

setDefaultTimeout(60_000);

const HOUR = 3_600_000;
const NAMES = Array.from({ length: 30 }, (_, index) => `up/${index}`);

describe.skipIf(missingPostgres !== undefined)("the statistics of two nodes", () => {
  let database: TestDatabase;
  let stores: Db[];
  beforeAll(async () => {
    database = await createDatabase();
    stores = [await openPostgres({ url: database.url }), await openPostgres({ url: database.url })];
  });
  afterAll(async () => {
    for (const db of stores) await db.close();
    await database.drop();
  });

  test("count each call once, without a deadlock, while they are moved and read", async () => {
    const clock = new FakeClock(Date.UTC(2026, 0, 2));
    const call = (name: string): UsageRecord => ({
      ...{ workspaceId: 1, agentId: null, kind: "tool", name, outcome: "succeeded" },
      ...{ at: clock.now(), durationMs: 7, credits: 1 },
    });
    const from = clock.now();
    let reported = 0;
    for (let round = 0; round < 10; round++) {
      await Promise.all(
        stores.flatMap((db, index) => {
          const names = index === 0 ? NAMES : NAMES.toReversed();
          const tally = new UsageTally(db, silentLog);
          for (const name of names) tally.note(call(name));
          const recorded = db.tx(1, async (tx) => {
            for (const name of names.toReversed()) recordUsage(tx, call(name));
          });
          const slots = new UsageSlots(db, clock, () => [1]);
          return [recorded, tally.flush(), slots.keepHouse()];
        }),
      );
      clock.advance(300_000);
      const [one, other] = stores.map((db) => new UsageSlots(db, clock, () => [1]));
      const moved = [one?.keepHouse(), other?.keepHouse()];
      const question = { workspaceId: 1, agentIds: null, from, to: from + HOUR, width: 300_000 };
      const [first] = stores;
      if (!first) throw new Error("two stores were opened");
      const { total } = await openUsageReports(first, true)(question);
      await Promise.all(moved);
      let calls = 0;
      // Each costs one micro-credit.
      for (const micros of total.tools.values()) calls += micros;
      expect(calls).toBe((round + 1) * 4 * NAMES.length);
      reported = calls;
    }
    expect(reported).toBe(1_200);
    const deadlocks = await database.query<{ deadlocks: string }>(
      "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()",
    );
    expect(Number(deadlocks[0]?.deadlocks)).toBe(0);
  });
});
