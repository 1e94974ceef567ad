/** The test mode in which each transaction's work runs twice, as PostgreSQL may have to run it. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import type { CommitWork, Tx } from "../../src/store/db.ts";
import { GroupCommit } from "../../src/store/sqlite/group.ts";
import { type Bench, openBench, outcomes } from "./support.ts";

let bench: Bench;
let group: GroupCommit;

beforeEach(() => {
  bench = openBench();
  group = new GroupCommit(bench.writer, { rerunWork: true });
});

afterEach(() => bench.close());

test("what the first run wrote is gone when the second one begins", async () => {
  const seen: number[] = [];
  const work = async (tx: Tx) => {
    const before = await tx.all("SELECT k FROM t");
    seen.push(before.length);
    tx.write("INSERT INTO t (k, v) VALUES ($1, 'x')", [before.length + 1]);
  };
  await Promise.all([group.submit(work, {}), group.submit(work, { single: true })]);
  expect(seen).toEqual([0, 0, 1, 1]);
  expect(bench.rows().map(({ k }) => k)).toEqual([1, 2]);
});

test("hooks follow each run: the first is rolled back, the second committed", async () => {
  const told: string[] = [];
  await group.submit(async (tx) => {
    tx.onRollback(() => told.push("rolled back"));
    tx.onCommit(() => told.push("committed"));
    told.push("run");
  }, {});
  expect(told).toEqual(["run", "rolled back", "run", "committed"]);
});

test("what transactions share is written once", async () => {
  class Sum implements CommitWork {
    sum = 0;
    async write(tx: Tx): Promise<void> {
      tx.write("INSERT INTO t (k, v) VALUES ($1, 'sum')", [this.sum]);
    }
  }
  const add = (amount: number) =>
    group.submit(async (tx) => {
      const shared = tx.shared(Sum);
      shared.sum += amount;
      tx.onRollback(() => {
        shared.sum -= amount;
      });
    }, {});
  await Promise.all([add(1), add(2)]);
  expect(bench.rows()).toEqual([{ k: 3, v: "sum" }]);
});

test("work that cannot run twice fails alone", async () => {
  let runs = 0;
  const once = group.submit(async (tx) => {
    runs += 1;
    if (runs > 1) throw new Error("ran already");
    tx.write("INSERT INTO t (k, v) VALUES (1, 'x')");
  }, {});
  const other = group.submit((tx) => tx.run("INSERT INTO t (k, v) VALUES (2, 'x')"), {});
  expect(await outcomes([once, other])).toEqual(["Error: ran already", 1]);
  expect(bench.rows().map(({ k }) => k)).toEqual([2]);
});
