/** Signed bytes that are not JSON, which an early version may have accepted, make no read fail. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { viewEntry } from "../../src/http/ledger/entry.ts";
import { seesEntry } from "../../src/http/ledger/own-entries.ts";
import { leafHash } from "../../src/ledger/entry.ts";
import { entryTest } from "../../src/ledger/reading/entry-filter.ts";
import { evidenceSpan } from "../../src/ledger/reading/evidence-pages.ts";
import { LedgerLists } from "../../src/ledger/reading/lists.ts";
import { rootOfComplete } from "../../src/ledger/tree-hash.ts";
import { draft, type LedgerBench, openLedger } from "./support.ts";

const NOT_ENTRIES = ["no JSON", "null", "7", '"text"', ""];

describe.each(NOT_ENTRIES)("an entry whose bytes are %p", (bytes) => {
  const entry = { seq: 5, leaf: leafHash(bytes), bytes };

  test("matches no filter, belongs to no agent, and is shown with its number and hash", () => {
    expect(entryTest({ agent: "scout" })(entry)).toBe(false);
    expect(seesEntry({ agent: "scout", since: "2026-01-01T00:00:00.000Z" }, entry)).toBe(false);
    expect(viewEntry(entry)).toMatchObject({ seq: 5, leaf: entry.leaf.toHex(), action: null });
  });

  test("is skipped by the search for a time", async () => {
    const times = ["2026-01-01", "2026-01-02", null, null, null, "2026-01-03", "2026-01-04", null];
    const evidence = {
      size: times.length,
      entry: async (seq: number) => {
        const ts = times[seq - 1];
        return { ...entry, seq, bytes: ts ? JSON.stringify({ ts }) : bytes };
      },
    };
    expect(await evidenceSpan(evidence, { from: "2026-01-02" })).toEqual({ first: 2, last: 8 });
    expect(await evidenceSpan(evidence, { from: "2026-01-03" })).toEqual({ first: 3, last: 8 });
    expect(await evidenceSpan(evidence, { from: "2026-01-04" })).toEqual({ first: 7, last: 8 });
    expect(await evidenceSpan(evidence, { from: "2026-01-01", to: "2026-01-03" })).toEqual({
      first: 1,
      last: 2,
    });
  });
});

describe("a complete block with signed bytes that are not JSON", () => {
  let bench: LedgerBench;
  beforeEach(async () => {
    bench = await openLedger();
    await Promise.all(Array.from({ length: 256 }, () => bench.ledger.record(1, draft())));
  });
  afterEach(() => bench.close());

  test("is listed, checked against the index, and not a fault", async () => {
    const database = bench.own;
    for (const { name } of database
      .query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
      .all())
      database.exec(`DROP TRIGGER ${name}`);
    database.run("UPDATE ledger SET bytes = ?, leaf = ? WHERE workspace_id = 1 AND seq = 5", [
      "no JSON",
      leafHash("no JSON"),
    ]);
    const root = rootOfComplete(Buffer.concat(bench.rows().map(({ leaf }) => leaf)));
    database.run("UPDATE ledger_tiles SET hashes = ? WHERE workspace_id = 1 AND level = 1", [root]);
    const faults: string[] = [];
    const lists = new LedgerLists({
      db: bench.db,
      heads: { committed: async () => ({ size: 256, root }) },
      faults: { report: (_, { message }) => void faults.push(message) },
    });
    for (let again = 0; again < 2; again++) {
      const page = await lists.find(1, {}, { order: "asc", limit: 300 });
      expect(page.entries.map(({ bytes }) => bytes)[4]).toBe("no JSON");
      expect(page.entries).toHaveLength(256);
    }
    expect(faults).toEqual([]);
  });
});
