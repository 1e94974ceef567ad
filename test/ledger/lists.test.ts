/**
 * Changes made to the file behind SQLite's back, while this process has it open, must not appear in any list.
 * `data_version` does not change then, so nothing reveals that the file was changed.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { LedgerChanged } from "../../src/ledger/ledger-changed.ts";
import { draft, type LedgerBench, openLedger } from "./support.ts";

const ENTRIES = 700;
const DENIALS = [20, 300];
const DENY = "oversight.deny";
const ALL = { first: 1, last: ENTRIES, order: "asc" } as const;

let bench: LedgerBench;

beforeEach(async () => {
  bench = await openLedger();
  await Promise.all(
    Array.from({ length: ENTRIES }, (_, n) =>
      bench.ledger.record(
        1,
        draft({ action: DENIALS.includes(n + 1) ? DENY : "test.note", task: `t${n + 1}` }),
      ),
    ),
  );
  bench.attacker().exec("PRAGMA wal_checkpoint(TRUNCATE)");
  for await (const _ of bench.lists.read(1, {}, ALL));
});
afterEach(() => bench.close());

const find = async (filter: object) =>
  (await bench.lists.find(1, filter, { order: "asc", limit: 200 })).entries;

/**
 * Replaces every occurrence of the bytes in the open file's pages, like a hex editor.
 * @returns how many occurrences there were
 */
function overwrite(from: string | Uint8Array, to: string | Uint8Array): number {
  const [before, after] = [Buffer.from(from), Buffer.from(to)];
  if (before.length !== after.length) throw new Error("the length must stay");
  const content = readFileSync(bench.path);
  const descriptor = openSync(bench.path, "r+");
  let count = 0;
  for (let at = content.indexOf(before); at >= 0; at = content.indexOf(before, at + 1), count++) {
    writeSync(descriptor, after, 0, after.length, at);
  }
  closeSync(descriptor);
  return count;
}

/**
 * Empties the reader's cache, as reading other pages would, so that it then reads what was written. What this process
 * has already checked stays checked.
 */
async function withoutCache(): Promise<void> {
  bench.attacker().exec("CREATE TABLE IF NOT EXISTS other (n); INSERT INTO other VALUES (1)");
  bench.attacker().exec("PRAGMA wal_checkpoint(TRUNCATE)");
}

describe("an entry changed behind SQLite's back in a checked block is in no list:", () => {
  beforeEach(async () => {
    expect((await find({ action: DENY })).map(({ seq }) => seq)).toEqual(DENIALS);
    expect(overwrite(`"action":"${DENY}"`, '"action":"oversight.nope"')).toBeGreaterThanOrEqual(2);
    await withoutCache();
  });

  test.each<[string, () => Promise<unknown>]>([
    ["by its former action", () => find({ action: DENY })],
    ["without a filter", () => find({})],
    ["read as a whole", async () => Array.fromAsync(bench.lists.read(1, {}, ALL))],
    ["alone", () => bench.lists.entry(1, DENIALS[0] ?? 0)],
  ])("%s", async (_, read) => {
    await expect(read()).rejects.toThrow(LedgerChanged);
    expect(bench.faults).toContain(`entry_changed ${DENIALS[0]}`);
  });

  test("by an action that it never had: it is not found", async () => {
    expect(await find({ action: "oversight.nope" })).toEqual([]);
  });
});

test("an entry in the last, incomplete block is checked by each list that reaches it", async () => {
  const last = `"task":"t${ENTRIES}"`;
  expect((await bench.lists.entry(1, ENTRIES))?.bytes).toContain(last);
  expect(overwrite(last, '"task":"t999"')).toBeGreaterThanOrEqual(1);
  await withoutCache();
  await expect(bench.lists.entry(1, ENTRIES)).rejects.toThrow(LedgerChanged);
});

test("an index that was changed after its blocks were checked hides nothing", async () => {
  const bits = bench
    .attacker()
    .query<{ bits: Uint8Array }, []>(`SELECT bits FROM ledger_index WHERE key = 'action:${DENY}'`)
    .all();
  for (const { bits: before } of bits)
    expect(overwrite(before, new Uint8Array(before.length))).toBeGreaterThan(0);
  await withoutCache();
  expect((await find({ action: DENY })).map(({ seq }) => seq)).toEqual(DENIALS);
});

test("a tile changed after its block was checked does not hide true entries from a list", async () => {
  bench
    .attacker()
    .exec("UPDATE ledger_tiles SET hashes = randomblob(length(hashes)) WHERE level = 0 AND tile = 0");
  for (let again = 0; again < 2; again++) {
    expect((await find({ action: DENY })).map(({ seq }) => seq)).toEqual(DENIALS);
  }
});
