import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  BITS_BYTES,
  BLOCK,
  blockBits,
  type IndexedEntry,
  indexBlock,
  indexKey,
  keysOf,
  OVERSIGHT_KEY,
} from "../../src/ledger/reading/block-index.ts";
import { CheckedBlocks, seqsIn } from "../../src/ledger/reading/checked-blocks.ts";
import { StoreUnavailable } from "../../src/store/db.ts";
import { type LedgerBench, openLedger } from "./support.ts";

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 7 });

let bench: LedgerBench;

beforeEach(async () => {
  bench = await openLedger();
});

afterEach(() => bench.close());

const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
/** Values that could be mistaken for one another if keys were built carelessly. */
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

describe("is not a block", () => {
  test.each(["no JSON", "null", "7", '"text"'])("of entries (%s) is not indexed", async (bytes) => {
    const rows = [{ bytes: "{}" }, { bytes }];
    const indexed = bench.db.tx(1, async (tx) => indexBlock(tx, 1, 3, rows));
    await expect(indexed).rejects.toThrow(StoreUnavailable);
    await expect(indexed).rejects.toThrow("entry 770");
    expect(await bench.db.get("SELECT COUNT(*) AS n FROM ledger_index")).toEqual({ n: 0 });
  });
});

describe("a block's bits", () => {
  test("are set for the entries that have a key, with the lowest bit of the first byte for the first entry", () => {
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

  test("describe every entry correctly, whatever its content", () => {
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

test("whatever is in a block, its bits find exactly the entries that have all given keys", () => {
  fc.assert(
    fc.property(
      fc.array(entry, { minLength: BLOCK, maxLength: BLOCK }),
      fc.array(fc.uniqueArray(key, { minLength: 1, maxLength: 4 }), { maxLength: 3 }),
      fc.nat({ max: 9 }),
      (entries, sets, block) => {
        const expected = entries.flatMap((each, place) =>
          sets.length === 0 || sets.some((keys) => keys.every((key) => has(each, key)))
            ? [block * BLOCK + place + 1]
            : [],
        );
        const checked = { root: new Uint8Array(32), bits: blockBits(entries) };
        expect([...seqsIn(checked, block, sets)]).toEqual(expected);
      },
    ),
    { numRuns: 50 },
  );
});

test("the memory for checked blocks is capped, and the oldest are forgotten", () => {
  const blocks = new CheckedBlocks(100_000);
  const block = { root: new Uint8Array(32), bits: blockBits([{ agent: "a", action: "b" }]) };
  for (let number = 0; number < 10_000; number++) {
    blocks.add(1 + (number % 3), number, block);
    expect(blocks.bytes).toBeLessThanOrEqual(100_000);
  }
  expect(blocks.get(1, 9_999)).toBe(block);
  expect(blocks.get(2, 9_999)).toBeUndefined();
  expect(blocks.get(1, 0)).toBeUndefined();
  // A block that is added twice counts once.
  const before = blocks.bytes;
  blocks.add(1, 9_999, block);
  expect(blocks.bytes).toBe(before);
});
