/** Budgets on a separate store. A reservation lasts exactly as long as its transaction. */
import { afterEach, beforeEach, expect, spyOn, test } from "bun:test";
import { openWorkspaces, type Workspaces } from "../../src/access/workspaces.ts";
import { type BudgetCrossing, Budgets, type Claim } from "../../src/gate/budget.ts";
import { recordSpending, spentThisMonth } from "../../src/gate/spending.ts";
import { Connection } from "../../src/store/sqlite/connection.ts";
import { type LedgerBench, openLedger } from "../ledger/support.ts";
import { countsInMemory } from "./support.ts";

const NEVER = new AbortController().signal;
const WORKSPACE = 1;

let bench: LedgerBench;
let workspaces: Workspaces;
let budgets: Budgets;
let crossings: BudgetCrossing[];
beforeEach(() => openBudgets());

async function openBudgets(rerunWork = true): Promise<void> {
  bench = await openLedger(undefined, rerunWork);
  const limits = { requestsPerMinute: 600, concurrentTasks: 60, enforcement: "soft" } as const;
  workspaces = await openWorkspaces(bench.db, bench.clock, limits);
  crossings = [];
  budgets = new Budgets({
    workspaces,
    clock: bench.clock,
    ...countsInMemory(),
    toolPrices: [],
    async recordCrossing(tx, crossing) {
      tx.onCommit(() => crossings.push(crossing));
    },
  });
}
afterEach(() => bench.close());

const claim = (owner: string, micros: number, creditsPerDay: number | null = null): Claim => ({
  spender: { workspaceId: WORKSPACE, agent: { id: 1, name: "clerk", creditsPerDay } },
  owner,
  expected: () => micros,
});
const admit = (given: Claim, signal = NEVER): Promise<number> =>
  budgets.admit(signal, (reserve) => bench.db.tx(1, (tx) => reserve(tx, given)));
const setMonth = (creditsPerMonth: number | null) =>
  bench.db.tx(1, (tx) => workspaces.change(tx, WORKSPACE, { creditsPerMonth }));
const spend = (micros: number) =>
  bench.db.tx(1, (tx) => budgets.charge(tx, { workspaceId: WORKSPACE, agent: null }, micros));
const codeOf = (error: unknown) => (error as { code?: string }).code;

test("nothing stays reserved if the transaction fails, and the next call begins", async () => {
  await setMonth(10);
  const failed = budgets.admit(NEVER, (reserve) =>
    bench.db.tx(1, async (tx) => {
      await reserve(tx, claim("a", 10));
      throw new Error("the intent was refused");
    }),
  );
  expect(await failed.catch(String)).toContain("the intent was refused");
  expect(budgets.reservations).toBe(0);
  expect(await admit(claim("b", 10))).toBe(10);
});

test("without a budget nothing is estimated", async () => {
  const asked = { ...claim("a", 1), expected: () => expect.unreachable() };
  expect(await admit(asked)).toBe(0);
  expect(budgets.reservations).toBe(0);
});

test("an owner has at most one call in flight", async () => {
  await setMonth(10);
  await admit(claim("a", 1));
  expect(await admit(claim("a", 1)).catch(String)).toContain("already has a reservation");
  budgets.release("a");
  budgets.release("a");
  expect(await admit(claim("a", 1))).toBe(1);
});

test("a call that waits for one budget and then for another begins once both have room", async () => {
  await setMonth(20);
  await admit(claim("day", 5, 5));
  const waits = admit(claim("waits", 1, 5));
  await spend(6);
  await admit(claim("month", 14));
  budgets.release("day");
  // The waiting call checks in a transaction, so another transaction after that one shows that it did.
  for (let turn = 0; turn < 3; turn++) await spend(0);
  expect(budgets.reservations).toBe(1);
  budgets.release("month");
  expect(await waits).toBe(1);
  expect(budgets.reservations).toBe(1);
});

test("a later call queues behind waiting ones, even if there is room at that moment", async () => {
  await setMonth(10);
  await admit(claim("out", 10));
  const first = admit(claim("first", 10));
  await spend(0);
  budgets.release("out");
  // The store has this claim before the waiting one learns of the room.
  const later = admit(claim("later", 10)).then(() => "later");
  expect(await Promise.race([first.then(() => "first"), later])).toBe("first");
  budgets.release("first");
  expect(await later).toBe("later");
});

test("a waiting call is refused once everything is spent, and is abandoned with the signal's reason", async () => {
  await setMonth(10);
  await admit(claim("out", 10));
  const giveUp = new AbortController();
  const [first, second] = [admit(claim("first", 1), giveUp.signal), admit(claim("second", 1))];
  const reason = new Error("enough");
  giveUp.abort(reason);
  expect(await first.catch((error: unknown) => error)).toBe(reason);
  await spend(10);
  budgets.release("out");
  expect(codeOf(await second.catch((error: unknown) => error))).toBe("credits_exhausted");
  expect(budgets.reservations).toBe(0);
});

test("a threshold is crossed when the sum passes it: not before, not twice, and not when a budget is lowered", async () => {
  await setMonth(11);
  await spend(8);
  expect(crossings).toEqual([]);
  await spend(1);
  await spend(1);
  expect(crossings.map(({ percent, spent }) => [percent, spent])).toEqual([[80, 9]]);
  await setMonth(10);
  await spend(5);
  expect(crossings).toHaveLength(1);
  await setMonth(15);
  await spend(0);
  await spend(100);
  expect(crossings).toHaveLength(1);
});

test("a charge beyond the greatest amount is counted as the greatest amount", async () => {
  await spend(7);
  await setMonth(10);
  for (const agent of [null, { id: 1, name: "clerk" }]) {
    await bench.db.tx(1, (tx) =>
      budgets.charge(tx, { workspaceId: WORKSPACE, agent }, Number.MAX_SAFE_INTEGER),
    );
    await spend(Number.MAX_SAFE_INTEGER);
  }
  expect(crossings.map(({ spent }) => Number.isSafeInteger(spent))).not.toContain(false);
  const months = await spentThisMonth(bench.db, WORKSPACE, bench.clock.now());
  expect(months).toBe(Number.MAX_SAFE_INTEGER);
  expect(codeOf(await admit(claim("a", 1)).catch((error: unknown) => error))).toBe("credits_exhausted");
});

test("the spending of a month is summed however many agents have spent the greatest amount", async () => {
  const now = bench.clock.now();
  await bench.db.tx(1, async (tx) => {
    for (let id = 1; id <= 1_100; id++) {
      await recordSpending(tx, WORKSPACE, id, now, Number.MAX_SAFE_INTEGER);
    }
  });
  expect(await spentThisMonth(bench.db, WORKSPACE, now)).toBe(Number.MAX_SAFE_INTEGER);
});

test("the rows of a month are summed once, however many calls are charged", async () => {
  bench.close();
  await openBudgets(false);
  await setMonth(1_000_000);
  await spend(1);
  const read = spyOn(Connection.prototype, "get");
  for (let call = 0; call < 20; call++) {
    const owner = `call ${call}`;
    await admit(claim(owner, 10));
    await budgets.check(bench.db, claim(owner, 10).spender);
    await spend(10);
    budgets.release(owner);
  }
  expect(await budgets.spentThisMonth(bench.db, WORKSPACE)).toBe(201);
  const statements = read.mock.calls.map(([sql]) => sql);
  read.mockRestore();
  expect(statements.length).toBeGreaterThan(0);
  expect(statements.filter((sql) => sql.includes("SUM("))).toEqual([]);
  expect(await spentThisMonth(bench.db, WORKSPACE, bench.clock.now())).toBe(201);
});

test("a charge that is rolled back does not count, and a new month begins with nothing spent", async () => {
  await setMonth(100);
  await spend(60);
  const failed = bench.db.tx(1, async (tx) => {
    await budgets.charge(tx, { workspaceId: WORKSPACE, agent: null }, 40);
    throw new Error("the outcome was refused");
  });
  expect(await failed.catch(String)).toContain("the outcome was refused");
  expect(await budgets.spentThisMonth(bench.db, WORKSPACE)).toBe(60);
  expect(await admit(claim("a", 10))).toBe(10);
  await spend(40);
  expect(codeOf(await admit(claim("b", 1)).catch((error: unknown) => error))).toBe("credits_exhausted");
  bench.clock.advance(31 * 86_400_000);
  expect(await budgets.spentThisMonth(bench.db, WORKSPACE)).toBe(0);
  expect(await admit(claim("c", 1))).toBe(1);
});
