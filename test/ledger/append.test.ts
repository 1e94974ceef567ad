import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { dirname } from "node:path";
import fc from "fast-check";
import { StoreUnavailable, type Tx } from "../../src/store/db.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { SEALS } from "../support/seals.ts";
import { chainFaults, chainsOf, draft, type LedgerBench, openLedger } from "./support.ts";

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 7 });

let bench: LedgerBench;

beforeEach(async () => {
  bench = await openLedger();
});

afterEach(() => bench.close());

const field = (bytes: string, name: string) => (JSON.parse(bytes) as Record<string, unknown>)[name];

describe("a transaction appends only to the ledgers that it was opened for", () => {
  const both = async (tx: Tx) => [
    await bench.ledger.append(tx, 1, draft()),
    await bench.ledger.append(tx, 2, draft()),
  ];

  test.each([
    ["none", null],
    ["one", 1],
    ["another one", 2],
    ["others", [2, 3]],
  ])("%s", async (_, ledgers) => {
    await expect(bench.db.tx(ledgers, both)).rejects.toThrow("the transaction was opened for the ledgers");
    expect([...bench.rows(1), ...bench.rows(2)]).toEqual([]);
  });

  test("several", async () => {
    expect(await bench.db.tx([2, 1], both)).toEqual([1, 1]);
  });

  test("one that it begins", async () => {
    let seq = 0;
    const undone = bench.db.tx(null, async (tx) => {
      tx.write("INSERT INTO workspaces (id, name, created_at) VALUES (3, 'w3', 0)");
      await bench.ledger.begin(tx, 3);
      seq = await bench.ledger.append(tx, 3, draft());
      throw new Error("undone");
    });
    await expect(undone).rejects.toThrow("undone");
    expect(seq).toBe(1);
  });
});

describe("many at once", () => {
  test("are numbered without gaps and chained, separately for each workspace", async () => {
    const jobs = Array.from({ length: 900 }, (_, index) => {
      const workspace = index % 3 === 0 ? 2 : 1;
      if (index % 5 > 0) return bench.ledger.record(workspace, draft({ task: `${index}` }));
      return bench.db.tx(workspace, (tx) =>
        bench.ledger.append(tx, workspace, { ...draft(), input: `${index}` }),
      );
    });
    const seqs = await Promise.all(jobs);
    for (const workspace of [1, 2]) {
      const rows = bench.rows(workspace);
      expect(chainFaults(rows)).toEqual([]);
      const answered = seqs.filter((_, index) => (index % 3 === 0 ? 2 : 1) === workspace);
      expect(answered.toSorted((a, b) => a - b)).toEqual(rows.map((row) => row.seq));
    }
  });

  test("return to each caller the number of its own entry", async () => {
    const seqs = await Promise.all(
      Array.from({ length: 100 }, (_, n) => bench.ledger.record(1, draft({ task: `t${n}` }))),
    );
    const rows = bench.rows();
    for (const [n, seq] of seqs.entries()) expect(field(rows[seq - 1]?.bytes ?? "{}", "task")).toBe(`t${n}`);
  });

  test("fail only for an entry that can't be encoded", async () => {
    const jobs = [draft(), draft({ credits: 0.5 }), draft()].map((each) => bench.ledger.record(1, each));
    const settled = await Promise.allSettled(jobs);
    expect(settled.map((each) => each.status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(bench.rows()).toHaveLength(2);
    expect(chainFaults(bench.rows())).toEqual([]);
  });
});

test("a failed transaction's number goes to the next, whatever fails when", async () => {
  const step = fc.record({
    workspace: fc.constantFrom(1, 2),
    entries: fc.integer({ min: 1, max: 3 }),
    throws: fc.boolean(),
    lone: fc.boolean(),
    pause: fc.boolean(),
  });
  const expected = new Map([
    [1, 0],
    [2, 0],
  ]);
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const jobs: Promise<unknown>[] = [];
      for (const { workspace, entries, throws, lone, pause } of steps) {
        if (pause) await Promise.allSettled(jobs);
        if (lone) jobs.push(bench.ledger.record(workspace, draft()));
        else {
          const work = bench.db.tx(workspace, async (tx) => {
            for (let entry = 0; entry < entries; entry++) await bench.ledger.append(tx, workspace, draft());
            if (throws) throw new Error("no");
          });
          jobs.push(work);
        }
        const lasting = lone ? 1 : throws ? 0 : entries;
        expected.set(workspace, (expected.get(workspace) ?? 0) + lasting);
      }
      await Promise.allSettled(jobs);
      for (const workspace of [1, 2]) {
        const rows = bench.rows(workspace);
        expect(rows).toHaveLength(expected.get(workspace) ?? -1);
        expect(chainFaults(rows)).toEqual([]);
      }
    }),
    { numRuns: 40 },
  );
});

describe("times", () => {
  test("never go backwards, even when the clock does or a later start continues", async () => {
    const start = bench.clock.now();
    await bench.ledger.record(1, draft());
    bench.clock.setWall(start - 3_600_000);
    await bench.ledger.record(1, draft());
    const later = openSqlite(bench.path, { seals: SEALS });
    const { ledger } = await chainsOf(later, dirname(bench.path), bench.clock);
    await ledger.record(1, draft());
    bench.clock.setWall(start + 5);
    await ledger.record(1, draft());
    await later.close();
    // The first ledger did not write these entries, so its store refuses to write others in their place.
    await expect(bench.ledger.record(1, draft())).rejects.toThrow(StoreUnavailable);
    const times = bench.rows().map((row) => Date.parse(String(field(row.bytes, "ts"))) - start);
    expect(times).toEqual([0, 0, 0, 5]);
    expect(chainFaults(bench.rows())).toEqual([]);
  });
});

describe("texts", () => {
  test.each([
    ["plain", "What time is it?"],
    ["empty", ""],
    ["beyond ASCII, with a zero inside", "ünïcödé 🚪\0 end"],
    ["with half a surrogate pair", "a\ud800b"],
    ["long", "x".repeat(300_000)],
  ])("%s: the entry contains a salted hash that the stored text and salt produce", async (_, text) => {
    const seq = await bench.db.tx(1, (tx) =>
      bench.ledger.append(tx, 1, { ...draft(), input: text, output: `${text}!` }),
    );
    const bytes = bench.rows()[seq - 1]?.bytes ?? "{}";
    for (const kind of ["input", "output"]) {
      const kept = await bench.db.get<{ salt: Uint8Array; body: string }>(
        "SELECT salt, body FROM payloads WHERE workspace_id = 1 AND seq = $1 AND kind = $2",
        [seq, kind],
      );
      const hash = createHash("sha256")
        .update(kept?.salt ?? "")
        .update(kept?.body ?? "", "utf8")
        .digest("hex");
      expect(field(bytes, `${kind}_hash`)).toBe(hash);
      expect(kept?.salt.length).toBe(16);
    }
  });

  test("that are equal have different hashes", async () => {
    const append = () => bench.db.tx(1, (tx) => bench.ledger.append(tx, 1, { ...draft(), input: "same" }));
    await append();
    await append();
    const [first, second] = bench.rows().map((row) => field(row.bytes, "input_hash"));
    expect(first).not.toBe(second);
  });

  test("can be erased, and the chain stays intact", async () => {
    await bench.db.tx(1, (tx) => bench.ledger.append(tx, 1, { ...draft(), input: "secret" }));
    await bench.db.run("DELETE FROM payloads");
    expect(chainFaults(bench.rows())).toEqual([]);
  });
});

test("an entry that can't be written is refused, and the next one takes its number", async () => {
  await bench.ledger.record(1, draft());
  const pages = await bench.db.tx(1, (tx) => tx.get<{ page_count: number }>("PRAGMA page_count"));
  await bench.db.tx(1, (tx) => tx.get(`PRAGMA max_page_count = ${(pages?.page_count ?? 0) + 1}`));
  const big = { x: "y".repeat(50_000) };
  const failed = await Promise.allSettled([
    bench.ledger.record(1, draft({ detail: big })),
    bench.db.tx(1, (tx) => bench.ledger.append(tx, 1, { ...draft(), input: "x".repeat(50_000) })),
  ]);
  for (const each of failed)
    expect(each.status === "rejected" && each.reason).toBeInstanceOf(StoreUnavailable);
  await bench.db.tx(1, (tx) => tx.get("PRAGMA max_page_count = 100000"));
  expect(await bench.ledger.record(1, draft({ detail: big }))).toBe(2);
  expect(chainFaults(bench.rows())).toEqual([]);
  expect(await bench.db.get("SELECT COUNT(*) AS n FROM payloads")).toEqual({ n: 0 });
});
