import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Tx } from "../../src/store/db.ts";
import { type Bench, openBench, outcomes } from "./support.ts";

let bench: Bench;

beforeEach(() => {
  bench = openBench();
});

afterEach(() => bench.close());

const INSERT = "INSERT INTO t (k, v) VALUES ($1, 'x')";

function insert(k: number): Promise<number> {
  return bench.group.submit((tx) => tx.run(INSERT, [k]), {});
}

describe("a write that nobody waits for", () => {
  const write = (tx: Tx, k: number) => tx.write(INSERT, [k]);
  const wrong = (tx: Tx) => tx.write("INSERT INTO nowhere VALUES (1)");

  test("keeps its place among the other statements", async () => {
    const seen = await bench.group.submit(async (tx) => {
      write(tx, 1);
      const rows = await tx.all<{ k: number }>("SELECT k FROM t");
      write(tx, 2);
      return [rows.length, await tx.run("UPDATE t SET v = 'y'")];
    }, {});
    expect(seen).toEqual([1, 2]);
    expect(bench.rows()).toHaveLength(2);
  });

  test.each([
    ["ends as if all were well", async () => "well"],
    ["throws something else", async () => Promise.reject(new Error("its own"))],
    ["catches what later statements throw", async (tx: Tx) => tx.run("DELETE FROM t").catch(() => 0)],
  ])("fails its job with its own error, although the job %s", async (_, then) => {
    const undone: string[] = [];
    const failing = (k: number) =>
      bench.group.submit(async (tx) => {
        tx.onRollback(() => undone.push(`${k}`));
        write(tx, k);
        wrong(tx);
        return then(tx);
      }, {});
    const results = await outcomes([failing(1), insert(2), failing(3), insert(4)]);
    expect(results.map((result) => String(result).includes("no such table"))).toEqual([
      true,
      false,
      true,
      false,
    ]);
    expect(bench.rows().map((row) => row.k)).toEqual([2, 4]);
    expect(undone).toEqual(["1", "3"]);
  });

  test("lets no later statement of its job run", async () => {
    const tried: string[] = [];
    const failing = bench.group.submit(async (tx) => {
      wrong(tx);
      write(tx, 1);
      for (const statement of [
        () => tx.get("SELECT 1"),
        () => tx.all("SELECT 1"),
        () => tx.run("DELETE FROM t"),
      ]) {
        await statement().catch((error: Error) => tried.push(error.message));
      }
    }, {});
    expect((await outcomes([failing]))[0]).toContain("no such table");
    expect(tried).toEqual(Array(3).fill("no such table: nowhere"));
  });

  test("of what runs before the commit loses the whole group", async () => {
    bench.group.beforeCommit(async (tx) => wrong(tx));
    expect(await outcomes([insert(1), insert(2)])).toEqual(["StoreUnavailable", "StoreUnavailable"]);
    expect(bench.rows()).toEqual([]);
  });

  test("is refused once its transaction has ended", async () => {
    let kept: Tx | undefined;
    await bench.group.submit(async (tx) => {
      kept = tx;
    }, {});
    expect(() => kept && write(kept, 1)).toThrow("the transaction has ended");
  });
});
