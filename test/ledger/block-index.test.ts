import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  BITS_BYTES,
  BLOCK,
  blockBits,
  type IndexedEntry,
  indexBlock,
  indexedSeqs,
  indexKey,
  keysOf,
  OVERSIGHT_KEY,
  type Span,
} from "../../src/ledger/block-index.ts";
import { StoreUnavailable } from "../../src/store/db.ts";
import { type LedgerBench, openLedger } from "./support.ts";

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 7 });

let bench: LedgerBench;

beforeEach(async () => {
  bench = await openLedger();
});

afterEach(() => bench.close());

const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
/** Values that could be taken for one another where keys were made carelessly. */
const text = fc.constantFrom("a", "agent:a", ":", "", "oversight", "1", "ü🚪", "a\0b", `"'%_`);
const entry: fc.Arbitrary<IndexedEntry> = fc
  .record({
    agent: maybe(text),
    actor: maybe(text),
    action: maybe(text),
    tier: maybe(fc.integer({ min: 0, max: 2 })),
    oversight: maybe(fc.constant({ person: "ann" })),
  })
  .map((fields) => JSON.parse(JSON.stringify(fields)));
const key = fc.oneof(
  text.map((value) => indexKey("agent", value)),
  text.map((value) => indexKey("actor", value)),
  text.map((value) => indexKey("action", value)),
  fc.integer({ min: 0, max: 3 }).map((value) => indexKey("tier", value)),
  fc.constant(OVERSIGHT_KEY),
);

function has(entry: IndexedEntry, key: string): boolean {
  if (key === "oversight") return entry.oversight !== undefined;
  const fields = ["agent", "actor", "action", "tier"] as const;
  return fields.some((field) => entry[field] !== undefined && key === `${field}:${entry[field]}`);
}

async function store(
  blocks: Iterable<readonly [block: number, entries: readonly object[]]>,
  workspaceId = 1,
) {
  await bench.db.tx(async (tx) => {
    for (const [block, entries] of blocks) {
      const rows = entries.map((each) => ({ bytes: JSON.stringify(each) }));
      await indexBlock(tx, workspaceId, block, rows);
    }
  });
}

/** All that is found, after a look at how it was told: in order, and never past what it said to have reached. */
async function seqsIn(keys: readonly string[], span: Span, workspaceId = 1): Promise<number[]> {
  const isUp = span.order === "asc";
  const all: number[] = [];
  let reached = isUp ? span.first - 1 : span.last + 1;
  for await (const { found, upTo } of indexedSeqs(bench.db, workspaceId, keys, span)) {
    const [low, high] = isUp ? [reached + 1, upTo] : [upTo, reached - 1];
    expect(low).toBeLessThanOrEqual(high);
    for (const seq of found) expect(seq >= low && seq <= high).toBe(true);
    expect(found).toEqual(found.toSorted((a, b) => (isUp ? a - b : b - a)));
    all.push(...found);
    reached = upTo;
  }
  expect(reached).toBe(isUp ? span.last : span.first);
  return all;
}

describe("what is no block", () => {
  test.each(["no JSON", "null", "7", '"text"'])("of entries (%s) is not indexed", async (bytes) => {
    const rows = [{ bytes: "{}" }, { bytes }];
    const indexed = bench.db.tx((tx) => indexBlock(tx, 1, 3, rows));
    await expect(indexed).rejects.toThrow(StoreUnavailable);
    await expect(indexed).rejects.toThrow("entry 770");
    expect(await bench.db.get("SELECT COUNT(*) AS n FROM ledger_index")).toEqual({ n: 0 });
  });
});

describe("a block's bits", () => {
  test("are set for the entries that have a key, the lowest bit of the first byte for the first of them", () => {
    const entries = Array.from({ length: BLOCK }, (_, n): IndexedEntry => {
      if (n === 0 || n === 9 || n === 255) return { agent: "a", tier: 2 };
      return n === 8 ? { agent: "b", oversight: {} } : {};
    });
    const bits = Object.fromEntries([...blockBits(entries)].map(([key, bits]) => [key, bits.toHex()]));
    expect(bits).toEqual({
      "agent:a": `0102${"00".repeat(29)}80`,
      "tier:2": `0102${"00".repeat(29)}80`,
      "agent:b": `0001${"00".repeat(30)}`,
      oversight: `0001${"00".repeat(30)}`,
    });
  });

  test("say of every entry what it is, whatever it is", () => {
    fc.assert(
      fc.property(fc.array(entry, { maxLength: BLOCK }), (entries) => {
        const found = blockBits(entries);
        for (const [key, bits] of found) {
          expect(bits).toHaveLength(BITS_BYTES);
          const all = Array.from({ length: BLOCK }, (_, n) => ((bits[n >> 3] ?? 0) >> (n & 7)) & 1);
          expect(all.map((bit) => bit === 1)).toEqual(all.map((_, n) => has(entries[n] ?? {}, key)));
        }
        expect(new Set(found.keys())).toEqual(new Set(entries.flatMap(keysOf)));
      }),
    );
  });
});

test("whatever stands in the blocks, whatever is asked for in whatever span is found, and nothing else", async () => {
  const BLOCKS = 5;
  const all = fc.sample(entry, { numRuns: BLOCKS * BLOCK, seed: 3 });
  const others = fc.sample(entry, { numRuns: BLOCKS * BLOCK, seed: 4 });
  const blocks = (entries: readonly IndexedEntry[]) =>
    Array.from({ length: BLOCKS }, (_, n) => [n, entries.slice(n * BLOCK, (n + 1) * BLOCK)] as const);
  await store(blocks(all));
  await store(blocks(others), 2);
  const seq = fc.oneof(
    fc.integer({ min: 1, max: BLOCKS * BLOCK }),
    fc.constantFrom(1, BLOCK, BLOCK + 1, 2 * BLOCK, BLOCKS * BLOCK),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(key, { minLength: 1, maxLength: 5 }),
      fc.tuple(seq, seq),
      fc.constantFrom("asc" as const, "desc" as const),
      async (keys, [one, other], order) => {
        const span = { first: Math.min(one, other), last: Math.max(one, other), order };
        const expected = all
          .map((each, n) => ({ seq: n + 1, isIn: keys.every((key) => has(each, key)) }))
          .filter(({ seq, isIn }) => isIn && seq >= span.first && seq <= span.last)
          .map(({ seq }) => seq);
        expect(await seqsIn(keys, span)).toEqual(order === "asc" ? expected : expected.toReversed());
      },
    ),
    { numRuns: 200 },
  );
});

/** Blocks with few entries each, so that there can be many. */
describe("an index of many blocks", () => {
  const two = [{ agent: "a" }, { agent: "b", tier: 1 }];
  const BLOCKS = [0, 1, 63, 64, 65, 2_046, 2_047, 2_048, 2_049, 4_095, 4_096, 9_000];
  const LAST = 9_001 * BLOCK;

  test.each(["asc", "desc"] as const)(
    "is gone through in steps, however far apart they are (%s)",
    async (order) => {
      await store(BLOCKS.map((block) => [block, two] as const));
      const expected = BLOCKS.map((block) => block * BLOCK + 2);
      if (order === "desc") expected.reverse();
      expect(await seqsIn(["agent:b"], { first: 1, last: LAST, order })).toEqual(expected);
      expect(await seqsIn(["agent:b", "tier:1"], { first: 1, last: LAST, order })).toEqual(expected);
      expect(await seqsIn(["agent:a", "tier:1"], { first: 1, last: LAST, order })).toEqual([]);
      expect(await seqsIn(["agent:c"], { first: 1, last: LAST, order })).toEqual([]);
    },
  );

  test.each(["asc", "desc"] as const)("is read 64 rows at a time, which match or not (%s)", async (order) => {
    const COUNT = 200;
    await store(Array.from({ length: COUNT }, (_, block) => [block, two] as const));
    for (const keys of [["agent:b"], ["agent:a", "tier:1"]]) {
      const looks: number[] = [];
      const span = { first: 1, last: COUNT * BLOCK, order };
      for await (const { found } of indexedSeqs(bench.db, 1, keys, span)) looks.push(found.length);
      expect(looks).toEqual(keys.length === 1 ? [64, 64, 64, 8] : [0, 0, 0, 0]);
    }
    expect(await seqsIn(["agent:b"], { first: 1, last: COUNT * BLOCK, order })).toHaveLength(COUNT);
  });
});
