/** Reservations as rows: the same sums as in memory, and nothing stays reserved for ever. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { systemClock } from "../../src/base/clock.ts";
import { createIds, systemRandom } from "../../src/base/ids.ts";
import { silentLog } from "../../src/base/log.ts";
import { SharedMonthTotals } from "../../src/gate/shared-month-totals.ts";
import { recordSpending, spentThisMonth } from "../../src/gate/spending.ts";
import { LocalReservations } from "../../src/limits/local-reservations.ts";
import { KEPT_MS } from "../../src/limits/shared-reservation-rows.ts";
import { SharedReservations } from "../../src/limits/shared-reservations.ts";
import type { Nodes } from "../../src/nodes/nodes.ts";
import { openNodes } from "../../src/nodes/shared/open-nodes.ts";
import type { Db, Tx } from "../../src/store/db.ts";
import { openPostgres } from "../../src/store/postgres/open.ts";
import { FakeClock } from "../support/clock.ts";
import { createDatabase, missingPostgres, type TestDatabase } from "../support/postgres/database.ts";
import { until } from "../support/until.ts";

setDefaultTimeout(60_000);

const WORKSPACE = 1;
const BUDGETS = ["day:1:1", "month:1", "day:1:2"];
/** The memory version needs no transaction of its own here: none is rolled back. */
const MEMORY = { onRollback() {} } as unknown as Tx;

interface Node {
  readonly db: Db;
  readonly nodes: Nodes;
  readonly clock: FakeClock;
  readonly reservations: SharedReservations;
}

describe.skipIf(missingPostgres !== undefined)("reservations of two nodes", () => {
  let database: TestDatabase;
  let pair: readonly [Node, Node];

  beforeAll(async () => {
    database = await createDatabase();
    pair = [await open(), await open()];
  });

  afterAll(async () => {
    for (const { db, nodes } of pair) {
      await nodes.close();
      await db.close();
    }
    await database.drop();
  });

  async function open(): Promise<Node> {
    const db = await openPostgres({ url: database.url });
    const ids = createIds(systemClock, systemRandom);
    const newId = () => ids("node");
    const nodes = await openNodes({ db, url: database.url, clock: systemClock, log: silentLog, newId });
    const clock = new FakeClock();
    return { db, nodes, clock, reservations: new SharedReservations({ db, nodes, clock, log: silentLog }) };
  }

  const rows = () => database.query<{ owner: string }>("SELECT DISTINCT owner FROM budget_reservations");
  const inTx = <Result>({ db }: Node, work: (tx: Tx) => Promise<Result>) => db.tx(WORKSPACE, work);
  const take = (node: Node, owner: string, budgets: readonly string[], amount: number) =>
    inTx(node, async (tx) => node.reservations.take(tx, { workspaceId: WORKSPACE, owner, budgets, amount }));
  const full = (node: Node, budget: string, micros: number) =>
    inTx(node, (tx) => node.reservations.withoutRoom(tx, WORKSPACE, [{ budget, micros }], false));

  test("have the same sums as in memory, whoever takes and returns them", async () => {
    const owner = fc.constantFrom("a", "b", "c", "d");
    const budgets = fc.subarray(BUDGETS, { minLength: 1 });
    const amount = fc.oneof(fc.integer({ min: 1, max: 1_000 }), fc.constant(Number.MAX_SAFE_INTEGER));
    const step = fc.oneof(
      fc.record({ take: owner, budgets, amount }),
      fc.record({ release: owner }),
      fc.record({ settle: owner }),
      fc.record({ fail: owner, budgets, amount }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (played) => {
        const memory = new LocalReservations();
        // Each owner is a call of one node.
        const nodeOf = (name: string) => pair[name === "a" || name === "b" ? 0 : 1];
        for (const each of played) {
          if ("take" in each) {
            const given = { workspaceId: WORKSPACE, owner: each.take, ...each };
            const isTaken = await take(nodeOf(each.take), each.take, each.budgets, each.amount);
            expect(isTaken).toBe(memory.take(MEMORY, given));
          } else if ("release" in each) {
            nodeOf(each.release).reservations.release(each.release);
            memory.release(each.release);
          } else if ("settle" in each) {
            const node = nodeOf(each.settle);
            await inTx(node, async (tx) => node.reservations.settle(tx, WORKSPACE, each.settle));
            node.reservations.release(each.settle);
            memory.release(each.settle);
          } else {
            const node = nodeOf(each.fail);
            const failed = inTx(node, async (tx) => {
              node.reservations.take(tx, { workspaceId: WORKSPACE, owner: `${each.fail} fails`, ...each });
              throw new Error("refused");
            });
            expect(await failed.catch(String)).toContain("refused");
          }
          // Rows of released calls are deleted right afterwards.
          const held = pair.reduce((sum, { reservations }) => sum + reservations.leases, 0);
          expect(held).toBe(memory.leases);
          await until(async () => (await rows()).length === held);
          for (const budget of BUDGETS) {
            const sum = Math.min(memory.reserved(budget), Number.MAX_SAFE_INTEGER);
            for (const node of pair) {
              expect(await full(node, budget, Math.max(1, sum))).toBe(sum === 0 ? null : budget);
              if (sum < Number.MAX_SAFE_INTEGER) expect(await full(node, budget, sum + 1)).toBeNull();
            }
          }
        }
        for (const name of ["a", "b", "c", "d"]) nodeOf(name).reservations.release(name);
        await until(async () => (await rows()).length === 0);
      }),
      { numRuns: 8, seed: 7 },
    );
  });

  test("a task that another node has taken over reserves for its next call, and its former node does not release that", async () => {
    const [former, next] = pair;
    await take(former, "task", ["month:1"], 5);
    await take(next, "task", ["month:1"], 7);
    former.reservations.release("task");
    await former.db.run("SELECT 1");
    await Bun.sleep(50);
    expect(await full(next, "month:1", 7)).toBe("month:1");
    expect(await full(next, "month:1", 8)).toBeNull();
    next.reservations.release("task");
    await until(async () => (await rows()).length === 0);
  });

  test("a lost call's reservation ends with its charge", async () => {
    const [former, next] = pair;
    await take(former, "lost", ["month:1"], 5);
    await inTx(next, async (tx) => next.reservations.settleLost(tx, WORKSPACE, "lost"));
    expect(await rows()).toEqual([]);
    former.reservations.release("lost");
  });

  test("a dead node's are kept until its lost calls are charged, and then released", async () => {
    const [node] = pair;
    const insert =
      "INSERT INTO budget_reservations (workspace_id, owner, budget, micros, node_id, lease) VALUES (1, $1, 'month:1', 5, $2, 9)";
    await database.query(insert, ["dead", "node_dead"]);
    // Left by a transaction of this node whose outcome was unknown.
    await database.query(insert, ["left over", node.nodes.id]);
    await take(node, "in flight", ["day:1:1"], 1);
    const place = node.reservations.join("month:1");
    node.nodes.beat.emit();
    await until(async () => (await rows()).length === 2);
    node.clock.advance(KEPT_MS - 1);
    node.nodes.beat.emit();
    await Bun.sleep(100);
    expect((await rows()).map(({ owner }) => owner).sort()).toEqual(["dead", "in flight"]);
    node.clock.advance(1);
    node.nodes.beat.emit();
    await place.turn(AbortSignal.timeout(10_000));
    place.leave();
    await until(async () => (await rows()).length === 1);
    node.reservations.release("in flight");
    await until(async () => (await rows()).length === 0);
  });

  test("a call that waits on another node is woken by a release", async () => {
    const [holder, waiter] = pair;
    for (const { nodes, clock } of pair) {
      await until(() => nodes.bus.deafForMs < 1_000);
      // Long after anything before.
      clock.advance(60_000);
    }
    await take(holder, "out", ["month:1"], 5);
    expect(await full(waiter, "month:1", 5)).toBe("month:1");
    const place = waiter.reservations.join("month:1");
    holder.reservations.release("out");
    await place.turn(AbortSignal.timeout(10_000));
    place.leave();
    expect(await full(waiter, "month:1", 5)).toBeNull();
  });

  test("the total of a month is the sum of its spending, whichever node charges", async () => {
    const months = new SharedMonthTotals();
    const january = Date.UTC(2026, 0, 31);
    const february = Date.UTC(2026, 1, 1);
    const [first, second] = pair;
    const charge = (node: Node, agent: number, now: number, micros: number) =>
      inTx(node, async (tx) => {
        await recordSpending(tx, WORKSPACE, agent, now, micros);
        months.add(tx, WORKSPACE, now, micros);
        return months.findIn(tx, WORKSPACE, now);
      });
    // Copied from another store, which has no such row.
    await inTx(first, (tx) => recordSpending(tx, WORKSPACE, 7, january, 100));
    expect(await months.find(first.db, WORKSPACE, january)).toBe(100);
    expect(await charge(first, 1, january, 10)).toBe(110);
    expect(await charge(second, 2, january, 20)).toBe(130);
    expect(await charge(second, 2, february, 1)).toBe(1);
    // Ends a moment after midnight, by the clock of a node that is behind.
    expect(await charge(first, 1, january, 5)).toBe(135);
    expect(await charge(first, 1, february, 2)).toBe(3);
    expect(await charge(first, 1, february, Number.MAX_SAFE_INTEGER)).toBe(Number.MAX_SAFE_INTEGER);
    for (const now of [january, february]) {
      expect(await months.find(second.db, WORKSPACE, now)).toBe(
        await spentThisMonth(second.db, WORKSPACE, now),
      );
    }
  });
});
