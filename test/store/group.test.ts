import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { CommitWork, Sql, Tx } from "../../src/store/db.ts";
import { openReader } from "../../src/store/sqlite/connection.ts";
import { GroupCommit } from "../../src/store/sqlite/group.ts";
import { readsInTurn, urgentReads } from "../../src/store/sqlite/reads.ts";
import { until } from "../support/until.ts";
import { type Bench, openBench, outcomes } from "./support.ts";

let bench: Bench;

beforeEach(() => {
  bench = openBench();
});

afterEach(() => bench.close());

const put = (k: number, v = "x") => ({
  sql: "INSERT INTO t (k, v) VALUES ($1, $2)",
  params: [k, v] as const,
});

function insert(k: number, v?: string): Promise<number> {
  const { sql, params } = put(k, v);
  return bench.group.submit((tx) => tx.run(sql, params), {});
}

describe("a job that fails", () => {
  test("by throwing rolls back all of its own writes and none of its neighbours'", async () => {
    const jobs = [
      insert(1),
      bench.group.submit(async (tx) => {
        await tx.run(put(2).sql, put(2).params);
        await tx.run("UPDATE t SET v = 'changed' WHERE k = 1");
        throw new Error("no");
      }, {}),
      insert(3),
    ];
    expect(await outcomes(jobs)).toEqual([1, "Error: no", 1]);
    expect(bench.rows()).toEqual([
      { k: 1, v: "x" },
      { k: 3, v: "x" },
    ]);
    expect(bench.commits()).toBe(1);
  });

  test("as the first of its group, without a savepoint, rolls back its own writes and none of those after it", async () => {
    const undone: string[] = [];
    const jobs = [
      bench.group.submit(async (tx) => {
        tx.onRollback(() => undone.push("first"));
        await tx.run(put(1).sql, put(1).params);
        throw new Error("no");
      }, {}),
      insert(2),
      bench.group.submit(async (tx) => {
        await tx.run(put(3).sql, put(3).params);
        throw new Error("no again");
      }, {}),
      insert(4),
    ];
    expect(await outcomes(jobs)).toEqual(["Error: no", 1, "Error: no again", 1]);
    expect(bench.rows().map((row) => row.k)).toEqual([2, 4]);
    expect(undone).toEqual(["first"]);
    expect(bench.commits()).toBe(1);
  });

  test("by violating a constraint reports that, and is not mistaken for a broken store", async () => {
    await insert(1);
    const [first, second, third] = await outcomes([insert(2), insert(1), insert(3)]);
    expect([first, third]).toEqual([1, 1]);
    expect(second).toContain("UNIQUE constraint failed");
    expect(bench.rows().map((row) => row.k)).toEqual([1, 2, 3]);
  });

  test("without its own savepoint also leaves its neighbours alone", async () => {
    const single = (k: number) =>
      bench.group.submit((tx) => tx.run(put(k).sql, put(k).params), { single: true });
    const results = await outcomes([single(1), single(1), single(2)]);
    expect(results[1]).toContain("UNIQUE");
    expect(bench.rows().map((row) => row.k)).toEqual([1, 2]);
  });

  test("with wrong SQL fails only itself", async () => {
    const broken = bench.group.submit((tx) => tx.run("INSERT INTO nowhere VALUES (1)"), {});
    const results = await outcomes([insert(1), broken, insert(2)]);
    expect(results[1]).toContain("no such table");
    expect(bench.rows()).toHaveLength(2);
  });
});

test("a job that has failed keeps its own error if nothing can begin after it", async () => {
  let looks = 0;
  const guard = {
    look() {
      looks += 1;
      if (looks === 2) throw new Error("the file has gone");
    },
    failed() {},
    sync: async () => {},
    refusal: null,
  };
  const group = new GroupCommit(bench.writer, { guard });
  const failing = group.submit(async () => {
    throw new Error("no");
  }, {});
  const { sql, params } = put(1);
  const next = group.submit((tx) => tx.run(sql, params), {});
  expect(await outcomes([failing, next])).toEqual(["Error: no", "StoreUnavailable"]);
  expect(bench.rows()).toEqual([]);
});

test("is answered once its commit is on disk, and the next group begins only then", async () => {
  const syncs: (() => void)[] = [];
  const sync = () => new Promise<void>((resolve) => syncs.push(resolve));
  const group = new GroupCommit(bench.writer, { guard: { look() {}, failed() {}, sync, refusal: null } });
  const seen: string[] = [];
  const write = (k: number) =>
    group.submit(async (tx) => {
      seen.push(`begun ${k}`);
      tx.onCommit(() => void seen.push(`committed ${k}`));
      await tx.run(put(k).sql, put(k).params);
    }, {});
  const first = write(1).then(() => seen.push("answered 1"));
  await until(() => syncs.length === 1);
  const second = write(2).then(() => seen.push("answered 2"));
  for (let turn = 0; turn < 5; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
  expect(seen).toEqual(["begun 1"]);
  syncs[0]?.();
  await until(() => syncs.length === 2);
  syncs[1]?.();
  await Promise.all([first, second]);
  expect(seen).toEqual(["begun 1", "committed 1", "answered 1", "begun 2", "committed 2", "answered 2"]);
});

test("reads wait for the sync, and for what is reported after it", async () => {
  const synced = Promise.withResolvers<void>();
  const guard = { look() {}, failed() {}, sync: () => synced.promise, refusal: null };
  const group = new GroupCommit(bench.writer, { guard });
  const reader = openReader(bench.path);
  const sources = { reader, syncing: group.syncing };
  const seen: string[] = [];
  const read = async (name: string, { get }: Pick<Sql, "get">) => {
    const row = await get<{ rows: number }>("SELECT COUNT(*) AS rows FROM t");
    seen.push(`${name}: ${row?.rows}`);
  };
  const write = group.submit(async (tx) => {
    tx.onCommit(() => void seen.push("reported"));
    await tx.run(put(1).sql, put(1).params);
  }, {});
  await until(() => group.syncing.reads !== null);
  const reads = [read("in turn", readsInTurn(sources)), read("urgent", urgentReads(sources))];
  for (let turn = 0; turn < 5; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
  expect(seen).toEqual([]);
  synced.resolve();
  await Promise.all([write, ...reads]);
  expect(seen[0]).toBe("reported");
  expect(seen.slice(1).sort()).toEqual(["in turn: 1", "urgent: 1"]);
  reader.close();
});

test("a group in which nothing was written syncs nothing", async () => {
  let syncs = 0;
  const sync = async () => {
    syncs += 1;
  };
  const group = new GroupCommit(bench.writer, { guard: { look() {}, failed() {}, sync, refusal: null } });
  const failing = group.submit(() => Promise.reject(new Error("no")), {});
  expect(await outcomes([failing])).toEqual(["Error: no"]);
  expect(syncs).toBe(0);
});

describe("once the engine has ended a transaction by itself", () => {
  const swallowing = () =>
    bench.group.submit(async (tx) => {
      await tx.run(put(1).sql, put(1).params);
      // As SQLite does at an I/O error.
      bench.writer.database.exec("ROLLBACK");
      await tx.run(put(2).sql, put(2).params).catch(() => {});
    }, {});

  test("nothing more is written, although the first job passes no error on", async () => {
    const results = await outcomes([swallowing(), insert(3), insert(4)]);
    expect(results[0]).toBe("StoreUnavailable");
    const kept = results.flatMap((result, index) => (result === 1 ? [index + 2] : []));
    expect(bench.rows().map((row) => row.k)).toEqual(kept);
    expect(await insert(5)).toBe(1);
  });

  test("nor by those that came before in its group", async () => {
    const results = await outcomes([insert(3), swallowing(), insert(4)]);
    expect(results.slice(0, 2)).toEqual(["StoreUnavailable", "StoreUnavailable"]);
    const kept = results[2] === 1 ? [4] : [];
    expect(bench.rows().map((row) => row.k)).toEqual(kept);
  });
});

describe("what the transactions of a commit share", () => {
  let writes = 0;
  class Sum implements CommitWork {
    #sum = 0;
    add(tx: Tx, amount: number): void {
      this.#sum += amount;
      tx.onRollback(() => {
        this.#sum -= amount;
      });
    }
    async write(tx: Tx): Promise<void> {
      writes += 1;
      await tx.run(put(this.#sum).sql, put(this.#sum).params);
    }
  }
  const add = (amount: number, error?: Error) =>
    bench.group.submit(async (tx) => {
      tx.shared(Sum).add(tx, amount);
      if (error) throw error;
    }, {});

  beforeEach(() => {
    writes = 0;
  });

  test("is written once, without what failed", async () => {
    const jobs = [add(1), add(10), add(100, new Error("no")), add(1_000)];
    expect(await outcomes(jobs)).toEqual([undefined, undefined, "Error: no", undefined]);
    expect(bench.rows().map((row) => row.k)).toEqual([1_011]);
    expect(writes).toBe(1);
    await add(7);
    expect(bench.rows().map((row) => row.k)).toEqual([7, 1_011]);
  });

  test("fails with all of them if it cannot be written", async () => {
    await add(5);
    const results = await outcomes([insert(1), add(2), add(3)]);
    for (const result of results) expect(result).toBe("StoreUnavailable");
    expect(bench.rows().map((row) => row.k)).toEqual([5]);
  });

  test("cannot be asked for while it is written", async () => {
    class Late implements CommitWork {
      async write(tx: Tx): Promise<void> {
        tx.shared(Sum);
      }
    }
    const late = bench.group.submit(async (tx) => void tx.shared(Late), {});
    expect((await outcomes([late]))[0]).toBe("StoreUnavailable");
  });
});

describe("many at once", () => {
  test("share one commit", async () => {
    await Promise.all(Array.from({ length: 200 }, (_, index) => insert(index)));
    expect(bench.rows()).toHaveLength(200);
    expect(bench.commits()).toBe(1);
  });

  test("beyond a group's size need a few more", async () => {
    await Promise.all(Array.from({ length: 1_000 }, (_, index) => insert(index)));
    expect(bench.rows()).toHaveLength(1_000);
    expect(bench.commits()).toBe(4);
  });

  test("one after another need one each", async () => {
    for (let index = 0; index < 5; index++) await insert(index);
    expect(bench.commits()).toBe(5);
  });

  test("each sees the writes of earlier ones, in order of arrival", async () => {
    const seen = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        bench.group.submit(async (tx) => {
          await tx.run(put(index).sql, put(index).params);
          return (await tx.get<{ n: number }>("SELECT COUNT(*) AS n FROM t"))?.n;
        }, {}),
      ),
    );
    expect(seen).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));
  });
});

describe("notifications", () => {
  test("of a commit: once it is on disk, before the job's own promise, in order", async () => {
    const told: string[] = [];
    const job = bench.group.submit(async (tx) => {
      await tx.run(put(1).sql, put(1).params);
      tx.onRollback(() => told.push("undone"));
      tx.onCommit(() => told.push(`first, ${bench.rows().length} on disk`));
      tx.onCommit(() => told.push("second"));
    }, {});
    await job.then(() => told.push("resolved"));
    expect(told).toEqual(["first, 1 on disk", "second", "resolved"]);
  });

  test("of a rollback: last registered first, and none of a commit", async () => {
    const told: string[] = [];
    const job = bench.group.submit(async (tx) => {
      tx.onCommit(() => told.push("committed"));
      tx.onRollback(() => told.push("first"));
      tx.onRollback(() => told.push("second"));
      throw new Error("no");
    }, {});
    await job.catch(() => told.push("rejected"));
    expect(told).toEqual(["second", "first", "rejected"]);
  });

  test("when the whole group is lost: every job that had succeeded, the last one first", async () => {
    const told: number[] = [];
    const jobs = [1, 2, 3].map((k) =>
      bench.group.submit(async (tx) => {
        await tx.run(put(k).sql, put(k).params);
        tx.onRollback(() => told.push(k));
        tx.onCommit(() => told.push(-k));
      }, {}),
    );
    const ruin = bench.group.submit(async () => bench.writer.database.exec("ROLLBACK"), {});
    expect(await outcomes([...jobs, ruin])).toEqual(Array(4).fill("StoreUnavailable"));
    expect(told).toEqual([3, 2, 1]);
    expect(bench.rows()).toEqual([]);
    expect(await insert(9)).toBe(1);
  });
});

describe("a transaction used after its end", () => {
  test.each([
    ["after success", async () => "done"],
    [
      "after failure",
      async () => {
        throw new Error("no");
      },
    ],
  ])("refuses everything %s", async (_, end) => {
    let kept: Tx | undefined;
    await bench.group
      .submit(async (tx) => {
        kept = tx;
        return end();
      }, {})
      .catch(() => {});
    expect(kept).toBeDefined();
    for (const use of [
      () => kept?.run(put(1).sql, put(1).params),
      () => kept?.get("SELECT 1"),
      () => kept?.all("SELECT 1"),
    ]) {
      expect(await outcomes([Promise.resolve(use())])).toEqual(["Error: the transaction has ended"]);
    }
    expect(bench.rows()).toEqual([]);
  });
});

test("a reader sees nothing of a transaction until it is committed", async () => {
  const seen: number[] = [];
  const halfway = Promise.withResolvers<void>();
  const resumeTask = Promise.withResolvers<void>();
  const job = bench.group.submit(async (tx) => {
    await tx.run(put(1).sql, put(1).params);
    halfway.resolve();
    await resumeTask.promise;
    await tx.run(put(2).sql, put(2).params);
  }, {});
  await halfway.promise;
  seen.push(bench.rows().length);
  resumeTask.resolve();
  await job;
  seen.push(bench.rows().length);
  expect(seen).toEqual([0, 2]);
});

test("beyond twenty thousand waiting jobs, the next is refused and the others are not lost", async () => {
  const jobs = Array.from({ length: 20_001 }, () => bench.group.submit(async () => "done", { single: true }));
  const results = await outcomes(jobs);
  expect(results.filter((each) => each === "done")).toHaveLength(20_000);
  expect(results.at(-1)).toBe("StoreUnavailable");
  expect(await insert(1)).toBe(1);
});

test("closing waits for all requested work, and accepts nothing more", async () => {
  let ended = 0;
  for (let index = 0; index < 600; index++) void insert(index).then(() => ended++);
  const end = bench.group.end();
  const late = outcomes([insert(999)]);
  await end;
  expect(await late).toEqual(["StoreUnavailable"]);
  expect(ended).toBe(600);
  await bench.group.end();
});

describe("many jobs that wait", () => {
  function write(workspaceId: number, k: number, v: string, order: number[]): Promise<number> {
    return bench.group.submit(
      (tx) => {
        order.push(workspaceId);
        return tx.run(put(k, v).sql, put(k, v).params);
      },
      { turnOf: workspaceId },
    );
  }

  test("are committed by workspaces in turn, however many one of them has", async () => {
    const order: number[] = [];
    const jobs = [1, 2, 3, 4].map((k) => write(1, k, "x", order));
    jobs.push(write(2, 5, "x", order));
    await Promise.all(jobs);
    expect(order).toEqual([1, 2, 1, 1, 1]);
  });

  /** Eight transactions of 10 ms each. @returns the turns of the event loop in which they ran */
  async function takeLong(group: GroupCommit): Promise<number[]> {
    const turns: number[] = [];
    let turn = 0;
    let waiting = true;
    const counting = (async () => {
      while (waiting) {
        await new Promise((resolve) => setImmediate(resolve));
        turn += 1;
      }
    })();
    const jobs = Array.from({ length: 8 }, (_, k) =>
      group.submit(async (tx) => {
        await tx.run("INSERT INTO t (k, v) VALUES ($1, 'x') ON CONFLICT (k) DO NOTHING", [k]);
        bench.time.cpuMs += 10;
        turns.push(turn);
      }, {}),
    );
    await Promise.all(jobs);
    waiting = false;
    await counting;
    return turns;
  }

  test("and take long are committed in several groups, with turns of the event loop between them", async () => {
    const before = bench.commits();
    expect(new Set(await takeLong(bench.group)).size).toBe(8);
    expect(bench.commits() - before).toBe(8);
  });

  test("share more of the syncs of a slow disk", async () => {
    const sync = () => Bun.sleep(20);
    const group = new GroupCommit(bench.writer, {
      guard: { look() {}, failed() {}, sync, refusal: null },
      cpuMs: () => bench.time.cpuMs,
    });
    const before = bench.commits();
    await takeLong(group);
    // The first group knows of no sync yet. Two such transactions use up the time of each later one.
    expect(bench.commits() - before).toBe(5);
  });
});
