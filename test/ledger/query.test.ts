import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type EntryFilter, findEntries, findEntry } from "../../src/ledger/query.ts";
import { draft, type LedgerBench, openLedger } from "./support.ts";

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 7 });

/** More than two slices of 4096, so that a page may begin, end and lie within any of them. */
const ENTRIES = 9_000;
let bench: LedgerBench;
let start: number;
let all: { seq: number; ts: string; agent?: string; actor: string; action: string; tier?: number }[];

beforeAll(async () => {
  bench = await openLedger();
  start = bench.clock.now();
  for (let at = 0; at < ENTRIES; at += 300) {
    const jobs = Array.from({ length: 300 }, (_, index) => {
      const n = at + index;
      return bench.ledger.record(
        1,
        draft({
          actor: `token:${n % 3}`,
          action: n % 1_000 === 0 ? "rare.thing" : "test.note",
          agent: n % 4 === 0 ? undefined : `a${n % 4}"'%_`,
          tier: n % 5 === 0 ? undefined : n % 5,
        }),
      );
    });
    await Promise.all(jobs);
    // Whole groups share a time, and some lie a day apart.
    bench.clock.advance(at % 900 === 0 ? 86_400_000 : 1);
  }
  await bench.ledger.record(2, draft({ actor: "token:0" }));
  all = bench.rows().map((row) => JSON.parse(row.bytes));
});

afterAll(() => bench.close());

const time = fc
  .integer({ min: -2, max: 40 })
  .chain((days) =>
    fc.integer({ min: -3, max: 3 }).map((ms) => new Date(start + days * 86_400_000 + ms).toISOString()),
  );
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const filter = fc.record({
  agent: maybe(fc.constantFrom(`a1"'%_`, `a2"'%_`, "a%", "nobody", "")),
  actor: maybe(fc.constantFrom("token:0", "token:1", "token")),
  action: maybe(fc.constantFrom("test.note", "rare.thing", "no.such")),
  tier: maybe(fc.integer({ min: 0, max: 5 })),
  from: maybe(time),
  to: maybe(time),
});
const page = fc.record({
  order: fc.constantFrom("asc" as const, "desc" as const),
  limit: fc.constantFrom(1, 7, 200),
  after: maybe(fc.integer({ min: 0, max: ENTRIES + 1 })),
});

function matches(
  entry: (typeof all)[number],
  { agent, actor, action, tier, from, to }: EntryFilter,
): boolean {
  return (
    (agent === undefined || entry.agent === agent) &&
    (actor === undefined || entry.actor === actor) &&
    (action === undefined || entry.action === action) &&
    (tier === undefined || entry.tier === tier) &&
    (from === undefined || entry.ts >= from) &&
    (to === undefined || entry.ts < to)
  );
}

test("a page is what filtering all entries would give, and says where it goes on", async () => {
  expect(all).toHaveLength(ENTRIES);
  await fc.assert(
    fc.asyncProperty(filter, page, async (wanted, { order, limit, after }) => {
      const found = await findEntries(bench.db, 1, wanted, { order, limit, after });
      const expected = (order === "asc" ? all : all.toReversed())
        .filter((entry) => after === undefined || (order === "asc" ? entry.seq > after : entry.seq < after))
        .filter((entry) => matches(entry, wanted))
        .map((entry) => entry.seq);
      expect(found.entries.map((entry) => entry.seq)).toEqual(expected.slice(0, limit));
      expect(found.next).toBe(expected.length > limit ? (expected[limit - 1] ?? null) : null);
    }),
    { numRuns: 120 },
  );
});

test("pages one after another hold every match once", async () => {
  for (const order of ["asc", "desc"] as const) {
    const seen: number[] = [];
    for (let after: number | undefined; ; ) {
      const found = await findEntries(bench.db, 1, { action: "rare.thing" }, { order, limit: 2, after });
      seen.push(...found.entries.map((entry) => entry.seq));
      if (found.next === null) break;
      after = found.next;
    }
    const expected = all.filter((entry) => entry.action === "rare.thing").map((entry) => entry.seq);
    expect(seen).toEqual(order === "asc" ? expected : expected.toReversed());
  }
});

describe("the other workspace's entries", () => {
  test("are in no page", async () => {
    const found = await findEntries(bench.db, 2, { actor: "token:0" }, { order: "asc", limit: 200 });
    expect(found.entries.map((entry) => entry.seq)).toEqual([1]);
    expect(await findEntries(bench.db, 3, {}, { order: "desc", limit: 10 })).toEqual({
      entries: [],
      next: null,
    });
  });

  test("are not found by their number", async () => {
    expect(await findEntry(bench.db, 2, 2)).toBeUndefined();
    expect((await findEntry(bench.db, 1, 2))?.seq).toBe(2);
  });
});

test("a long search lets other work in between its slices", async () => {
  let turns = 0;
  const pulse = setInterval(() => turns++, 0);
  const started = performance.now();
  await findEntries(bench.db, 1, { action: "no.such" }, { order: "asc", limit: 10 });
  clearInterval(pulse);
  expect(turns).toBeGreaterThan(0);
  expect(performance.now() - started).toBeLessThan(5_000);
});

test("a search ends after so many slices, and goes on from there without losing a match", async () => {
  for (const order of ["asc", "desc"] as const) {
    const seen: number[] = [];
    let calls = 0;
    for (let after: number | undefined; ; calls++) {
      const page = { order, limit: 200, after, slices: 1 };
      const found = await findEntries(bench.db, 1, { action: "rare.thing" }, page);
      seen.push(...found.entries.map((entry) => entry.seq));
      if (found.next === null) break;
      after = found.next;
    }
    expect(calls).toBe(Math.ceil(ENTRIES / 4096) - 1);
    const expected = all.filter((entry) => entry.action === "rare.thing").map((entry) => entry.seq);
    expect(seen).toEqual(order === "asc" ? expected : expected.toReversed());
  }
});

test("a search nobody waits for any more ends", async () => {
  const signal = AbortSignal.abort();
  const found = await findEntries(bench.db, 1, { action: "no.such" }, { order: "asc", limit: 10 }, signal);
  expect(found).toEqual({ entries: [], next: 0 });
});
