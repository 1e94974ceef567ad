import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  type EntryFilter,
  type EntryPage,
  findEntry,
  ledgerSize,
  type StoredEntry,
} from "../../src/ledger/reading/query.ts";
import { draft, type LedgerBench, listsOf, openLedger } from "./support.ts";

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 7 });

/** 66 blocks of the index, more than one step of a search reads, and 104 entries that are not in any block yet. */
const ENTRIES = 17_000;
const BLOCK = 256;
const LOOKED_UP = 64 * BLOCK;
/** Agents' names that contain everything that could end a string, a pattern or a number early. */
const AGENTS = [undefined, `a1"'%_`, "a2\0ü🚪", "agent:a3"];

interface Entry {
  readonly seq: number;
  readonly ts: string;
  readonly agent?: string;
  readonly actor: string;
  readonly action: string;
  readonly tier?: number;
  readonly oversight?: object;
}

let bench: LedgerBench;
let start: number;
let all: Entry[];

beforeAll(async () => {
  bench = await openLedger();
  start = bench.clock.now();
  for (let at = 0; at < ENTRIES; at += 500) {
    const jobs = Array.from({ length: 500 }, (_, index) => {
      const n = at + index;
      return bench.ledger.record(
        1,
        draft({
          actor: `token:${n % 3}`,
          action: n % 1_000 === 0 ? "rare.thing" : "test.note",
          agent: AGENTS[n % 4],
          // Each block has entries of the first agent and entries of tier 4, but no entry that matches both.
          tier: n % 5 === 0 || (n % 5 === 4 && n % 4 === 1) ? undefined : n % 5,
          oversight: n % 40 === 3 ? { person: "ann", decision: "approve" } : undefined,
        }),
      );
    });
    await Promise.all(jobs);
    // Whole groups share a time, and some are a day apart.
    bench.clock.advance(at % 1_500 === 0 ? 86_400_000 : 1);
  }
  await bench.ledger.record(2, draft({ actor: "token:0" }));
  all = bench.rows().map((row) => JSON.parse(row.bytes));
  // Reading checks every block once. From then on, the index answers lists.
  for await (const _ of bench.lists.read(1, {}, { first: 1, last: ENTRIES, order: "asc" }));
});

afterAll(() => bench.close());

const NEVER = { agent: `a1"'%_`, tier: 4 } as const;

const time = fc
  .integer({ min: -2, max: 40 })
  .chain((days) =>
    fc.integer({ min: -3, max: 3 }).map((ms) => new Date(start + days * 86_400_000 + ms).toISOString()),
  );
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const filter: fc.Arbitrary<EntryFilter> = fc.record({
  agent: maybe(fc.constantFrom(`a1"'%_`, "a2\0ü🚪", "a2", "agent:a3", "a%", "nobody", "")),
  actor: maybe(fc.constantFrom("token:0", "token:1", "token")),
  action: maybe(fc.constantFrom("test.note", "rare.thing", "no.such")),
  tier: maybe(fc.integer({ min: 0, max: 5 })),
  oversight: maybe(fc.constant(true as const)),
  from: maybe(time),
  to: maybe(time),
});
const order = fc.constantFrom("asc" as const, "desc" as const);
/** Any number, and numbers around the boundary between indexed and other entries. */
const seq = fc.oneof(
  fc.integer({ min: 0, max: ENTRIES + 1 }),
  fc
    .tuple(fc.constantFrom(0, BLOCK, LOOKED_UP, 66 * BLOCK, ENTRIES), fc.integer({ min: -1, max: 1 }))
    .map(([near, by]) => Math.max(0, near + by)),
);
const page = fc.record({ order, limit: fc.constantFrom(1, 7, 200), after: maybe(seq) });

function matches(entry: Entry, { agent, actor, action, tier, oversight, from, to }: EntryFilter): boolean {
  return (
    (agent === undefined || entry.agent === agent) &&
    (actor === undefined || entry.actor === actor) &&
    (action === undefined || entry.action === action) &&
    (tier === undefined || entry.tier === tier) &&
    (oversight === undefined || entry.oversight !== undefined) &&
    (from === undefined || entry.ts >= from) &&
    (to === undefined || entry.ts < to)
  );
}

/** What a scan of every entry finds. */
function expected(wanted: EntryFilter, { order, after }: Pick<EntryPage, "order" | "after">): number[] {
  return (order === "asc" ? all : all.toReversed())
    .filter((entry) => after === undefined || (order === "asc" ? entry.seq > after : entry.seq < after))
    .filter((entry) => matches(entry, wanted))
    .map((entry) => entry.seq);
}

const seqsOf = (entries: readonly StoredEntry[]) => entries.map(({ seq }) => seq);

/** Reads page after page, each starting where the previous one ended. */
async function walk(
  wanted: EntryFilter,
  page: EntryPage,
): Promise<{ readonly seqs: number[]; readonly pages: number }> {
  const seqs: number[] = [];
  for (let pages = 1, after: number | undefined; ; pages++) {
    const found = await bench.lists.find(1, wanted, { ...page, after });
    expect(found.entries.length).toBeLessThanOrEqual(page.limit);
    seqs.push(...seqsOf(found.entries));
    if (found.next === null) return { seqs, pages };
    // Otherwise the search would never end.
    if (after !== undefined)
      expect(page.order === "asc" ? found.next > after : found.next < after).toBe(true);
    after = found.next;
  }
}

describe("the other workspace's entries", () => {
  test("are in no page", async () => {
    const found = await bench.lists.find(2, { actor: "token:0" }, { order: "asc", limit: 200 });
    expect(seqsOf(found.entries)).toEqual([1]);
    expect(await bench.lists.find(2, { agent: "nobody" }, { order: "desc", limit: 10 })).toEqual({
      entries: [],
      next: null,
    });
  });

  test("are not found by their number", async () => {
    expect(await findEntry(bench.db, 2, 2)).toBeUndefined();
    expect((await findEntry(bench.db, 1, 2))?.seq).toBe(2);
    expect([await ledgerSize(bench.db, 2), await ledgerSize(bench.db, 3)]).toEqual([1, 0]);
  });
});

describe("a page", () => {
  test("equals the result of filtering all entries, and says where it continues", async () => {
    expect(all).toHaveLength(ENTRIES);
    await fc.assert(
      fc.asyncProperty(filter, page, async (wanted, page) => {
        const found = await bench.lists.find(1, wanted, page);
        const matching = expected(wanted, page);
        expect(seqsOf(found.entries)).toEqual(matching.slice(0, page.limit));
        expect(found.next).toBe(matching.length > page.limit ? (matching[page.limit - 1] ?? null) : null);
      }),
      { numRuns: 200 },
    );
  });

  test("that may read only a few times is the beginning of that, and continues where it stopped", async () => {
    await fc.assert(
      fc.asyncProperty(filter, page, fc.integer({ min: 1, max: 3 }), async (wanted, page, looks) => {
        const { entries, next } = await bench.lists.find(1, wanted, { ...page, looks });
        const matching = expected(wanted, page);
        const upTo =
          next === null
            ? matching
            : matching.filter((seq) => (page.order === "asc" ? seq <= next : seq >= next));
        expect(seqsOf(entries)).toEqual(upTo);
        expect(entries.length).toBeLessThanOrEqual(page.limit);
      }),
      { numRuns: 200 },
    );
  });

  test("has the entries' own bytes and leaves", async () => {
    const { entries } = await bench.lists.find(1, {}, { order: "asc", limit: 1, after: 99 });
    const row = bench.rows()[99];
    expect(entries.map(({ seq, bytes }) => ({ seq, bytes }))).toEqual([
      { seq: 100, bytes: row?.bytes ?? "" },
    ]);
    expect(entries[0]?.leaf.toHex()).toBe(Buffer.from(row?.leaf ?? []).toString("hex"));
  });
});

describe("consecutive pages contain every match once", () => {
  test("whatever is searched for, in whatever order, however little each search may read", async () => {
    const some = fc.record({
      action: fc.constant("rare.thing"),
      actor: maybe(fc.constant("token:0")),
      oversight: maybe(fc.constant(true as const)),
    });
    const few: fc.Arbitrary<EntryFilter> = fc.oneof(
      some,
      filter.map((each) => ({ ...each, ...NEVER })),
      filter.map((each) => ({ ...each, oversight: true as const })),
    );
    await fc.assert(
      fc.asyncProperty(few, order, fc.constantFrom(1, 2, 64), async (wanted, order, looks) => {
        const { seqs } = await walk(wanted, { order, limit: 50, looks });
        expect(seqs).toEqual(expected(wanted, { order }));
      }),
      { numRuns: 100 },
    );
  });

  test.each(["asc", "desc"] as const)("without a filter (%s)", async (order) => {
    const { seqs, pages } = await walk({}, { order, limit: 1_000 });
    expect(seqs).toEqual(expected({}, { order }));
    expect(pages).toBe(ENTRIES / 1_000);
  });
});

describe("a search that finds nothing", () => {
  test.each([
    // One read of the checked blocks, and one of the last block, which is checked when a read begins there.
    ["asc", [66 * BLOCK, null]],
    ["desc", [null]],
  ] as const)(
    "ends after as many reads as it may make, and continues from there (%s)",
    async (order, ends) => {
      const reached: (number | null)[] = [];
      let after: number | undefined;
      do {
        const found = await bench.lists.find(1, NEVER, { order, limit: 200, after, looks: 1 });
        expect(found.entries).toEqual([]);
        reached.push(found.next);
        after = found.next ?? undefined;
      } while (after !== undefined);
      expect(reached).toEqual([...ends]);
      expect(await bench.lists.find(1, NEVER, { order, limit: 200, looks: 3 })).toEqual({
        entries: [],
        next: null,
      });
    },
  );

  test("skips blocks without matches in one read", async () => {
    const found = await bench.lists.find(1, { action: "no.such" }, { order: "asc", limit: 10, looks: 1 });
    expect(found).toEqual({ entries: [], next: 66 * BLOCK });
  });

  test("lets other work run between its reads, once they have used up a turn", async () => {
    const turns: string[] = [];
    const searches = Array.from({ length: 20 }, () =>
      bench.lists.find(1, NEVER, { order: "asc", limit: 10 }).then(() => turns.push("found")),
    );
    await new Promise((resolve) => setImmediate(resolve));
    turns.push("other");
    await Promise.all(searches);
    expect(turns.indexOf("other")).toBeLessThan(10);
  });

  test("ends when nobody waits for it any more, and reports how far it got", async () => {
    const signal = AbortSignal.abort();
    const found = await bench.lists.find(1, NEVER, { order: "asc", limit: 10 }, signal);
    expect(found).toEqual({ entries: [], next: 66 * BLOCK });
  });

  test("ends between two reads when it is aborted", async () => {
    const controller = new AbortController();
    // Nothing is checked yet, so a step reads four blocks, and other work runs after each.
    const lists = listsOf(bench.db, bench.heads);
    const search = lists.find(1, NEVER, { order: "desc", limit: 10 }, controller.signal);
    setImmediate(() => controller.abort());
    const { entries, next } = await search;
    expect([entries, next === null]).toEqual([[], false]);
  });
});

describe("all matching entries are read", () => {
  test("some at a time, in order, whatever the range", async () => {
    await fc.assert(
      fc.asyncProperty(
        filter,
        order,
        fc.tuple(seq, seq),
        async ({ from: _, to: __, ...wanted }, order, ends) => {
          const [first, last] = [Math.max(1, Math.min(...ends)), Math.min(ENTRIES, Math.max(...ends))];
          const seen: number[] = [];
          for await (const entries of bench.lists.read(1, wanted, { first, last, order })) {
            expect(entries.length).toBeLessThanOrEqual(BLOCK);
            seen.push(...seqsOf(entries));
          }
          expect(seen).toEqual(expected(wanted, { order }).filter((seq) => seq >= first && seq <= last));
        },
      ),
      { numRuns: 60 },
    );
  });

  test("of an empty range, none", async () => {
    for await (const _ of bench.lists.read(1, {}, { first: 5, last: 4, order: "asc" })) {
      throw new Error("there is nothing to read");
    }
  });

  test("of a period: its first and its last entry, found by binary search", async () => {
    await fc.assert(
      fc.asyncProperty(maybe(time), maybe(time), async (from, to) => {
        const inside = all.filter((entry) => matches(entry, { from, to }));
        const { first, last } = await bench.lists.span(1, { from, to });
        if (inside.length === 0) expect(first).toBeGreaterThan(last);
        else expect([first, last]).toEqual([inside[0]?.seq ?? 0, inside.at(-1)?.seq ?? 0]);
      }),
      { numRuns: 100 },
    );
  });
});

/** This comes last, because it changes the index. */
describe("an index that claims too much adds no entry that does not match", () => {
  const WANTED: readonly EntryFilter[] = [
    { action: "rare.thing" },
    { action: "rare.thing", actor: "token:1" },
    { oversight: true, action: "rare.thing" },
    { tier: 4, action: "rare.thing" },
  ];

  beforeAll(() => {
    bench.own.exec(`
      UPDATE ledger_index SET bits = unhex('${"ff".repeat(32)}') WHERE key IN ('action:rare.thing', 'oversight');
      INSERT OR IGNORE INTO ledger_index
        SELECT workspace_id, 'action:rare.thing', block, bits FROM ledger_index WHERE key = 'oversight';
      INSERT INTO ledger_index SELECT workspace_id, 'tier:5', block, bits FROM ledger_index WHERE key = 'oversight';
    `);
  });

  test.each(WANTED)("%j", async (wanted) => {
    for (const order of ["asc", "desc"] as const) {
      const { seqs } = await walk(wanted, { order, limit: 50 });
      expect(seqs).toEqual(expected(wanted, { order }));
    }
  });

  test("and costs a search no additional read", async () => {
    const wanted = { action: "rare.thing", tier: 5 };
    const { entries, next } = await bench.lists.find(1, wanted, { order: "asc", limit: 9 });
    expect([entries, next]).toEqual([[], null]);
    const { seqs, pages } = await walk(wanted, { order: "asc", limit: 9 });
    expect(seqs).toEqual([]);
    expect(pages).toBe(1);
  });
});
