/** A store that cannot be written reports it, writes nothing partially, and resumes once it can be written. */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { Problem } from "../../src/base/errors.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { tempDir } from "../support/process.ts";
import { SEALS } from "../support/seals.ts";
import { type Bench, openBench, outcomes } from "./support.ts";

let bench: Bench;

beforeEach(() => {
  bench = openBench();
});

afterEach(() => bench.close());

const BIG = "x".repeat(100_000);

function insert(k: number, v = "x"): Promise<number> {
  return bench.group.submit((tx) => tx.run("INSERT INTO t (k, v) VALUES ($1, $2)", [k, v]), {});
}

/** Past this limit SQLite answers SQLITE_FULL, as on a full disk, and rolls back the whole transaction. */
function limitPages(more: number): void {
  const pages = bench.writer.get<{ page_count: number }>("PRAGMA page_count")?.page_count ?? 0;
  bench.writer.database.exec(`PRAGMA max_page_count = ${pages + more}`);
}

describe("a full disk", () => {
  test("refuses the group, keeps nothing of it, and fails only while it is full", async () => {
    await insert(1);
    limitPages(2);
    // What has not begun yet is tried in the next group.
    expect(await outcomes([insert(2), insert(3, BIG), insert(4)])).toEqual([
      ...["StoreUnavailable", "StoreUnavailable", 1],
    ]);
    expect(bench.rows().map((row) => row.k)).toEqual([1, 4]);
    limitPages(10_000);
    expect(await outcomes([insert(2), insert(3, BIG)])).toEqual([1, 1]);
    expect(bench.rows().map((row) => row.k)).toEqual([1, 2, 3, 4]);
  });

  test("is not a success for a job that ignores it", async () => {
    limitPages(2);
    const before = insert(1);
    const careless = bench.group.submit(async (tx) => {
      await tx.run("INSERT INTO t (k, v) VALUES (2, $1)", [BIG]).catch(() => {});
      return "all is well";
    }, {});
    expect(await outcomes([before, careless])).toEqual(["StoreUnavailable", "StoreUnavailable"]);
    expect(bench.rows()).toEqual([]);
  });

  test("is reported to the neighbours of a job that mistakes it for its own failure", async () => {
    limitPages(2);
    const before = insert(1);
    const mistaken = bench.group.submit(async (tx) => {
      await tx.run("INSERT INTO t (k, v) VALUES (2, $1)", [BIG]).catch(() => {
        throw new Problem("not_found", "There is no such thing of mine.");
      });
    }, {});
    expect(await outcomes([before, mistaken, insert(3)])).toEqual([
      ...["StoreUnavailable", "StoreUnavailable", 1],
    ]);
  });
});

test("a store that turned read-only refuses writes until it is writable", async () => {
  await insert(1);
  bench.writer.database.exec("PRAGMA query_only = ON");
  expect(await outcomes([insert(2), insert(3)])).toEqual(["StoreUnavailable", "StoreUnavailable"]);
  bench.writer.database.exec("PRAGMA query_only = OFF");
  expect(await outcomes([insert(2)])).toEqual([1]);
  expect(bench.rows().map((row) => row.k)).toEqual([1, 2]);
});

describe("a foreign process that holds the write lock", () => {
  let foreign: Database;

  beforeEach(() => {
    foreign = new Database(bench.path);
    foreign.exec("BEGIN IMMEDIATE");
  });

  afterEach(() => foreign.close());

  test("is waited for without blocking the event loop", async () => {
    // If SQLite itself waited, it would block the event loop for this long at each attempt.
    expect(bench.writer.get<object>("PRAGMA busy_timeout")).toEqual({ timeout: 0 });
    const written = insert(1);
    let turns = 0;
    // Everything else continues: one of these turns is what releases the lock.
    for (; turns < 1_000; turns++) await new Promise((resolve) => setImmediate(resolve));
    expect(bench.rows()).toEqual([]);
    foreign.exec("COMMIT");
    expect(await written).toBe(1);
  });

  test("blocks no reader", async () => {
    const written = insert(1);
    expect(bench.rows()).toEqual([]);
    foreign.exec("COMMIT");
    await written;
    expect(bench.rows()).toHaveLength(1);
  });

  test("is not waited for endlessly", async () => {
    // Make timers fire at once, and count them.
    let waits = 0;
    const realTimeout = globalThis.setTimeout;
    const hurried = (task: () => void) => {
      waits += 1;
      return realTimeout(task, 0);
    };
    globalThis.setTimeout = Object.assign(hurried, realTimeout);
    try {
      expect(await outcomes([insert(1), insert(2)])).toEqual(["StoreUnavailable", "StoreUnavailable"]);
    } finally {
      globalThis.setTimeout = realTimeout;
    }
    // Each represents 20 ms, so together they are a few seconds.
    expect(waits).toBeGreaterThan(100);
    expect(waits).toBeLessThan(1_000);
    foreign.exec("COMMIT");
    expect(await insert(1)).toBe(1);
  });
});

test("the program's own writer never waits inside SQLite", async () => {
  const directory = tempDir();
  const db = openSqlite(join(directory.path, "gatehouse.db"), { seals: SEALS });
  try {
    expect(await db.tx(1, (tx) => tx.get<object>("PRAGMA busy_timeout"))).toEqual({ timeout: 0 });
  } finally {
    await db.close();
    directory.remove();
  }
});
