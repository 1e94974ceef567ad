/** The last block of a ledger grows. Lists cache the part that they have checked, and trust no more than before. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { LedgerChanged } from "../../src/ledger/ledger-changed.ts";
import { LedgerLists } from "../../src/ledger/reading/lists.ts";
import type { Sql } from "../../src/store/db.ts";
import { draft, type LedgerBench, openLedger } from "./support.ts";

const BLOCK = 256;
const DENY = "oversight.deny";

let bench: LedgerBench;
beforeEach(async () => {
  bench = await openLedger();
});
afterEach(() => bench.close());

/** Appends entries. Each tenth is a denial. */
async function append(count: number): Promise<void> {
  const first = (await bench.lists.size(1)) + 1;
  await Promise.all(
    Array.from({ length: count }, (_, at) =>
      bench.ledger.record(
        1,
        draft({ action: (first + at) % 10 === 0 ? DENY : "test.note", task: `t${first + at}` }),
      ),
    ),
  );
}

const newest = (lists: LedgerLists, filter: object = {}, limit = 20) =>
  lists.find(1, filter, { order: "desc", limit }).then(({ entries }) => entries.map(({ seq }) => seq));

/** Lists, with a count of the ledger's rows that they read, and of its tiles. */
function counting(): { lists: LedgerLists; rows: () => number; tiles: () => number } {
  let rows = 0;
  let tiles = 0;
  const db: Pick<Sql, "all" | "get"> = {
    get(sql, params) {
      if (sql.includes("FROM ledger_tiles ")) tiles += 1;
      return bench.db.get(sql, params);
    },
    async all<Row>(sql: string, params?: Parameters<Sql["all"]>[1]) {
      const found = await bench.db.all<Row>(sql, params);
      if (sql.includes("FROM ledger ")) rows += found.length;
      return found;
    },
  };
  const lists = new LedgerLists({ db, heads: bench.heads, faults: { report() {} } });
  return {
    lists,
    tiles: () => tiles,
    rows() {
      const read = rows;
      rows = 0;
      return read;
    },
  };
}

test("a page of the newest entries reads only itself and the entries appended since the previous page, not the whole last block", async () => {
  await append(BLOCK - 30);
  const { lists, rows } = counting();
  await newest(lists);
  expect(rows()).toBeGreaterThanOrEqual(BLOCK - 30);
  await newest(lists);
  expect(rows()).toBeLessThanOrEqual(21);
  await append(5);
  await newest(lists);
  expect(rows()).toBeLessThanOrEqual(21 + 5);
  expect(await newest(lists, { action: DENY }, 3)).toEqual([230, 220, 210]);
  expect(rows()).toBeLessThanOrEqual(4);
  await lists.entry(1, BLOCK - 25);
  expect(rows()).toBe(1);
});

test("lists with and without a cache find the same while the ledger grows past blocks", async () => {
  for (const count of [1, 9, 200, 45, 1, 1, 255, 1, 256, 256, 3]) {
    await append(count);
    const fresh = counting().lists;
    for (const filter of [{}, { action: DENY }, { action: "nothing.such" }]) {
      const found = await Promise.all([
        newest(bench.lists, filter),
        newest(bench.lists, filter),
        newest(fresh, filter),
      ]);
      expect(found[0]).toEqual(found[2]);
      expect(found[1]).toEqual(found[2]);
      const up = { order: "asc", limit: 200 } as const;
      expect(await bench.lists.find(1, filter, up)).toEqual(await fresh.find(1, filter, up));
    }
  }
  expect(bench.faults).toEqual([]);
});

test("lists that begin while others extend the same block each see the ledger as it was at their start", async () => {
  await append(100);
  const pages: Promise<number[]>[] = [];
  const sizes: number[] = [];
  for (let round = 0; round < 8; round++) {
    await append(20);
    sizes.push(await bench.lists.size(1));
    pages.push(newest(bench.lists, {}, 1));
  }
  expect((await Promise.all(pages)).flat()).toEqual(sizes);
});

describe("an entry that is changed after a list has checked the last block", () => {
  const change = (seq: number, action: string) => {
    const attacker = bench.own;
    for (const { name } of attacker
      .query<{ name: string }, []>(
        "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'ledger'",
      )
      .all()) {
      attacker.exec(`DROP TRIGGER ${name}`);
    }
    attacker.exec(
      `UPDATE ledger SET bytes = replace(bytes, '"action":"${DENY}"', '"action":"${action}"') WHERE seq = ${seq}`,
    );
  };

  beforeEach(async () => {
    await append(105);
    await newest(bench.lists);
    change(100, "oversight.nope");
  });

  test.each([
    ["without a filter", {}],
    ["by its former action", { action: DENY }],
  ])("is an error in a list %s", async (_, filter) => {
    await expect(newest(bench.lists, filter)).rejects.toThrow(LedgerChanged);
    expect(bench.faults).toContain("entry_changed 100");
  });

  test("is not in a list filtered by an action that it never had", async () => {
    expect(await newest(bench.lists, { action: "oversight.nope" })).toEqual([]);
  });

  test("is an error when read by itself", async () => {
    await expect(bench.lists.entry(1, 100)).rejects.toThrow(LedgerChanged);
  });

  test("is also found if it was appended since", async () => {
    await append(5);
    change(110, "oversight.nope");
    await expect(newest(bench.lists, { action: "nothing.such" })).rejects.toThrow(LedgerChanged);
  });
});

describe("reads that begin together read each block once:", () => {
  const firstEntries = (lists: LedgerLists, count: number) =>
    Promise.all(Array.from({ length: count }, (_, at) => lists.entry(1, at + 1)));

  test("a complete block", async () => {
    await append(2 * BLOCK);
    const { lists, rows, tiles } = counting();
    const found = await firstEntries(lists, 100);
    expect(found.map((entry) => entry?.seq)).toEqual(found.map((_, at) => at + 1));
    expect(rows()).toBe(BLOCK);
    const before = tiles();
    expect(await firstEntries(lists, 100)).toEqual(found);
    expect([rows(), tiles() - before]).toEqual([100, 1]);
  });

  test("the last block, and what was appended to it", async () => {
    await append(100);
    const { lists, rows } = counting();
    await firstEntries(lists, 50);
    // Each also reads its own entry.
    expect(rows()).toBe(100 + 50);
    await append(20);
    await firstEntries(lists, 50);
    expect(rows()).toBe(20 + 50);
  });

  test("and fail together if the block was changed", async () => {
    await append(2 * BLOCK);
    bench.own.exec("DROP TRIGGER ledger_no_update");
    bench.own.exec("UPDATE ledger SET bytes = replace(bytes, '\"t7\"', '\"t9\"') WHERE seq = 7");
    const { lists } = counting();
    const reads = () => Promise.allSettled([1, 2, 7].map((seq) => lists.entry(1, seq)));
    for (const read of [...(await reads()), ...(await reads())]) {
      expect(read).toMatchObject({ status: "rejected", reason: expect.any(LedgerChanged) });
    }
  });
});

test("long pages that begin together are read in different turns of the event loop", async () => {
  await append(BLOCK + 10);
  await newest(bench.lists, {}, 200);
  let turn = 0;
  let isOver = false;
  const count = (): void => {
    turn += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const turns = await Promise.all(
    Array.from({ length: 30 }, () => newest(bench.lists, {}, 200).then(() => turn)),
  );
  isOver = true;
  const pages = new Map<number, number>();
  for (const each of turns) pages.set(each, (pages.get(each) ?? 0) + 1);
  // 200 rows count as 300 KB, and a turn reads 512 KiB.
  expect(Math.max(...pages.values())).toBeLessThanOrEqual(4);
});
