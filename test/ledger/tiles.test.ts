import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { completeLedger } from "../../src/ledger/ledger.ts";
import { isConsistent, rootOfInclusion } from "../../src/ledger/proof/check.ts";
import { consistencyRanges, inclusionRanges } from "../../src/ledger/proof/ranges.ts";
import { completeTiles, TreeReader, tiledSize } from "../../src/ledger/tiles.ts";
import { TREE } from "../../src/ledger/tree-hash.ts";
import { StoreUnavailable } from "../../src/store/db.ts";
import { keptIn, keptOf, oracleOf, variedDraft, writeBare, writeBareAt } from "./kept.ts";
import type { Oracle } from "./proof/oracle.ts";
import { draft, type LedgerBench, openLedger } from "./support.ts";

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 7 });

let bench: LedgerBench;

beforeEach(async () => {
  bench = await openLedger();
});

afterEach(() => bench.close());

/** Records many entries at once, as calls arrive. */
async function record(workspaceId: number, from: number, count: number): Promise<void> {
  await Promise.all(
    Array.from({ length: count }, (_, n) => bench.ledger.record(workspaceId, variedDraft(from + n))),
  );
}

/** Faults of the store's roots and proofs, in trees of these sizes: one sentence each. */
async function proofFaults(oracle: Oracle, workspaceId: number, sizes: readonly number[]): Promise<string[]> {
  const faults: string[] = [];
  const isSame = (a: Uint8Array, b: Uint8Array) => Buffer.compare(a, b) === 0;
  const areSame = (a: readonly Uint8Array[], b: readonly Uint8Array[]) =>
    a.length === b.length && a.every((hash, index) => isSame(hash, b[index] ?? new Uint8Array()));
  for (const size of sizes) {
    const tree = new TreeReader(bench.db, workspaceId);
    const root = await tree.root(size);
    if (!isSame(root, oracle.root(size))) faults.push(`the root of ${size}`);
    for (const index of new Set([0, 255, 256, 65_535, 65_536, size >> 1, size - 2, size - 1])) {
      if (index < 0 || index >= size) continue;
      const path = await new TreeReader(bench.db, workspaceId).hashesOf(inclusionRanges(index, size));
      if (!areSame(path, oracle.path(index, size))) faults.push(`the path of ${index} in ${size}`);
      const found = rootOfInclusion(TREE, oracle.leaf(index), index, size, path);
      if (!found || !isSame(found, root)) faults.push(`${index} in ${size} leads elsewhere`);
    }
    for (const from of new Set([0, 1, 255, 256, 257, 512, 65_536, size >> 1, size - 1, size])) {
      if (from < 0 || from > size) continue;
      const proof = await new TreeReader(bench.db, workspaceId).hashesOf(consistencyRanges(from, size));
      if (!areSame(proof, oracle.proof(from, size))) faults.push(`the proof from ${from} to ${size}`);
      const older = { size: from, root: oracle.root(from) };
      if (!isConsistent(TREE, older, { size, root }, proof)) faults.push(`${from} to ${size} is refused`);
    }
  }
  return faults;
}

const BORDERS = [0, 1, 2, 3, 254, 255, 256, 257, 258, 511, 512, 513];

describe("a tree can't be read", () => {
  test("past its end, or in an empty range", async () => {
    await record(1, 0, 300);
    const tree = new TreeReader(bench.db, 1);
    await expect(tree.root(301)).rejects.toThrow("incomplete");
    await expect(tree.root(100_000)).rejects.toThrow("incomplete");
    await expect(tree.hashOf({ start: 299, end: 301 })).rejects.toThrow("incomplete");
    await expect(tree.hashOf({ start: 5, end: 5 })).rejects.toThrow("empty range");
  });

  test("if a tile is missing, or cut", async () => {
    await record(1, 0, 600);
    const attacker = bench.own;
    attacker.exec("UPDATE ledger_tiles SET hashes = substr(hashes, 1, 32) WHERE level = 1");
    await expect(new TreeReader(bench.db, 1).root(600)).rejects.toThrow("incomplete");
    expect(await new TreeReader(bench.db, 1).root(300)).toEqual(oracleOf(bench.rows()).root(300));
    attacker.exec("DELETE FROM ledger_tiles WHERE level = 1");
    await expect(new TreeReader(bench.db, 1).root(300)).rejects.toThrow("incomplete");
  });

  test("of another workspace", async () => {
    await record(1, 0, 300);
    expect(await new TreeReader(bench.db, 2).root(0)).toEqual(TREE.empty());
    await expect(new TreeReader(bench.db, 2).root(1)).rejects.toThrow("incomplete");
    expect(await tiledSize(bench.db, 2)).toBe(0);
  });
});

describe("roots and proofs are those of RFC 9162", () => {
  test("as the ledger grows one by one, and at every earlier size", async () => {
    const roots: Uint8Array[] = [];
    for (let size = 0; size <= 514; size++) {
      if (BORDERS.includes(size)) roots.push(await new TreeReader(bench.db, 1).root(size));
      await bench.ledger.record(1, variedDraft(size));
    }
    const oracle = oracleOf(bench.rows());
    expect(roots).toEqual(BORDERS.map((size) => oracle.root(size)));
    const some = Array.from({ length: 75 }, (_, n) => 7 * n).filter((size) => size <= 515);
    expect(await proofFaults(oracle, 1, [...some, ...BORDERS, 514, 515])).toEqual([]);
    expect(keptIn(bench, 1)).toEqual(keptOf(bench.rows(), oracle));
  });

  test("if groups pass one boundary, several, or none", async () => {
    let size = 0;
    for (const count of [255, 1, 1, 254, 2, 1_000, 20, 3]) {
      await record(1, size, count);
      size += count;
      expect(keptIn(bench, 1)).toEqual(keptOf(bench.rows()));
    }
    expect(await proofFaults(oracleOf(bench.rows()), 1, [...BORDERS, 514, 1_512, 1_535, 1_536])).toEqual([]);
  });

  test("if one transaction passes several boundaries", async () => {
    const seqs = await bench.db.tx(1, async (tx) => {
      const seqs: number[] = [];
      for (let n = 0; n < 700; n++) seqs.push(await bench.ledger.append(tx, 1, variedDraft(n)));
      return [seqs[0], seqs.at(-1)];
    });
    expect(seqs).toEqual([1, 700]);
    expect(keptIn(bench, 1)).toEqual(keptOf(bench.rows()));
    expect(await proofFaults(oracleOf(bench.rows()), 1, [...BORDERS, 700])).toEqual([]);
  });

  test("seen from within the transaction that passes the boundary", async () => {
    await record(1, 0, 250);
    const inside = await bench.db.tx(1, async (tx) => {
      for (let n = 250; n < 260; n++) await bench.ledger.append(tx, 1, variedDraft(n));
      return new TreeReader(tx, 1).root(260);
    });
    expect(inside).toEqual(oracleOf(bench.rows()).root(260));
  });
});

test("each workspace has its own tiles, and rolled-back entries are in none, whatever fails when", async () => {
  const step = fc.record({
    workspace: fc.constantFrom(1, 2),
    entries: fc.integer({ min: 1, max: 90 }),
    // Where it throws: before its entries, between them or after them; or not at all.
    throwsAt: fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined }),
    lone: fc.boolean(),
    pause: fc.boolean(),
  });
  const expected = new Map([
    [1, 0],
    [2, 0],
  ]);
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      const jobs: Promise<unknown>[] = [];
      for (const { workspace, entries, throwsAt, lone, pause } of steps) {
        if (pause) await Promise.allSettled(jobs);
        if (lone) jobs.push(record(workspace, expected.get(workspace) ?? 0, entries));
        else {
          const work = bench.db.tx(workspace, async (tx) => {
            const last = throwsAt === undefined ? entries : Math.floor(throwsAt * entries);
            for (let n = 0; n < last; n++) await bench.ledger.append(tx, workspace, variedDraft(n));
            if (throwsAt !== undefined) throw new Error("no");
          });
          jobs.push(work);
        }
        if (lone || throwsAt === undefined) expected.set(workspace, (expected.get(workspace) ?? 0) + entries);
      }
      await Promise.allSettled(jobs);
      for (const workspace of [1, 2]) {
        const rows = bench.rows(workspace);
        expect(rows).toHaveLength(expected.get(workspace) ?? -1);
        const oracle = oracleOf(rows);
        expect(keptIn(bench, workspace)).toEqual(keptOf(rows, oracle));
        expect(await new TreeReader(bench.db, workspace).root(rows.length)).toEqual(oracle.root(rows.length));
      }
    }),
    { numRuns: 25 },
  );
  for (const workspace of [1, 2]) expect(expected.get(workspace)).toBeGreaterThan(3 * 256);
});

test("entries that a full disk rejected are in no tile, and come with the next entries", async () => {
  await record(1, 0, 250);
  const pages = await bench.db.tx(1, (tx) => tx.get<{ page_count: number }>("PRAGMA page_count"));
  await bench.db.tx(1, (tx) => tx.get(`PRAGMA max_page_count = ${(pages?.page_count ?? 0) + 1}`));
  const big = draft({ detail: { x: "y".repeat(20_000) } });
  const failed = await Promise.allSettled(Array.from({ length: 10 }, () => bench.ledger.record(1, big)));
  expect(failed.map(({ status }) => status)).not.toContain("fulfilled");
  expect(keptIn(bench, 1)).toEqual({ tiles: [], index: [] });
  await bench.db.tx(1, (tx) => tx.get("PRAGMA max_page_count = 100000"));
  await record(1, 250, 10);
  expect(keptIn(bench, 1)).toEqual(keptOf(bench.rows()));
  expect(await proofFaults(oracleOf(bench.rows()), 1, [250, 255, 256, 257, 260])).toEqual([]);
});

describe("a ledger that was written without tiles", () => {
  test("gets them, with its index, when it is opened, and continues as if it had always had them", async () => {
    await record(1, 0, 1_111);
    await record(2, 0, 300);
    const before = [keptIn(bench, 1), keptIn(bench, 2)];
    const attacker = bench.own;
    attacker.exec("DELETE FROM ledger_tiles WHERE workspace_id = 1");
    attacker.exec("DELETE FROM ledger_index WHERE workspace_id = 1");
    await completeLedger(bench.db, 1);
    expect([keptIn(bench, 1), keptIn(bench, 2)]).toEqual(before);
    expect(before[0]).toEqual(keptOf(bench.rows()));
    await record(1, 1_111, 300);
    expect(keptIn(bench, 1)).toEqual(keptOf(bench.rows()));
  });

  test.each([0, 1, 255, 256, 257, 512])("of %p entries", async (size) => {
    writeBare(bench, 1, size);
    await completeLedger(bench.db, 1);
    await completeLedger(bench.db, 1);
    expect(keptIn(bench, 1)).toEqual(keptOf(bench.rows()));
    expect(await proofFaults(oracleOf(bench.rows()), 1, [size])).toEqual([]);
  });

  test("continues where building them was interrupted", async () => {
    writeBare(bench, 1, 1_600);
    // This much was on disk when the process died.
    await bench.db.tx(1, (tx) => completeTiles(tx, 1, 0, 600));
    expect(await tiledSize(bench.db, 1)).toBe(512);
    await completeLedger(bench.db, 1);
    expect(keptIn(bench, 1)).toEqual(keptOf(bench.rows()));
  });
});

test("nothing is appended after a foreign entry, and no tile is built from it", async () => {
  await record(1, 0, 255);
  writeBare(bench, 1, 1);
  for (let again = 0; again < 3; again++) {
    await expect(bench.ledger.record(1, draft())).rejects.toThrow(StoreUnavailable);
  }
  expect(bench.rows()).toHaveLength(256);
  expect(keptIn(bench, 1)).toEqual({ tiles: [], index: [] });
});

test.each([
  ["bytes that are no JSON", "bytes = 'no JSON'", "entry 251 of the ledger was not written by this program"],
  ["bytes that are no object", "bytes = '5'", "entry 251 of the ledger was not written by this program"],
  [
    "a leaf that is not a hash",
    "leaf = x'01'",
    "tile 0/0 of the ledger's tree includes entries that this program did not write",
  ],
])("an entry that was changed to have %s lets no block be completed", async (_, change, message) => {
  await record(1, 0, 255);
  const attacker = bench.own;
  attacker.exec("DROP TRIGGER ledger_no_update");
  attacker.exec(`UPDATE ledger SET ${change} WHERE workspace_id = 1 AND seq = 251`);
  for (let again = 0; again < 2; again++) {
    expect(String(await bench.ledger.record(1, draft()).catch((error: unknown) => error))).toContain(message);
  }
  expect(keptIn(bench, 1)).toEqual({ tiles: [], index: [] });
});

test("nothing is built on top of a tile that was cut", async () => {
  await record(1, 0, 511);
  bench.own.exec("UPDATE ledger_tiles SET hashes = x'' WHERE level = 1");
  await expect(bench.ledger.record(1, draft())).rejects.toThrow(StoreUnavailable);
  await expect(bench.ledger.record(1, draft())).rejects.toThrow(
    "tile 1/0 of the ledger's tree is incomplete",
  );
  expect(bench.rows()).toHaveLength(511);
});

test("the third level begins with entry 65,536, and proofs are valid on both sides of it", async () => {
  await bench.close();
  bench = await openLedger((path) => writeBareAt(path, 1, 65_529));
  const { ledger } = bench;
  // The next entry is the start's own, which records that the ledger is signed from here on.
  expect(bench.rows()).toHaveLength(65_530);
  expect(await tiledSize(bench.db, 1)).toBe(65_280);
  for (let n = 65_530; n < 65_540; n++) await ledger.record(1, variedDraft(n));
  await Promise.all(Array.from({ length: 300 }, (_, n) => ledger.record(1, variedDraft(65_540 + n))));
  const rows = bench.rows();
  expect(rows).toHaveLength(65_840);
  const oracle = oracleOf(rows);
  const kept = keptIn(bench, 1);
  expect(kept).toEqual(keptOf(rows, oracle));
  expect(kept.tiles.filter(([level]) => level === 2)).toHaveLength(1);
  const sizes = [255, 256, 257, 513, 65_279, 65_280, 65_535, 65_536, 65_537, 65_791, 65_792, 65_793, 65_840];
  expect(await proofFaults(oracle, 1, sizes)).toEqual([]);
});
