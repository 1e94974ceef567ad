/** Ways around an append-only table (design, section 3), each tried through the attacker's own connection. */
import type { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { chainFaults, draft, type LedgerBench, openLedger, type Row } from "./support.ts";

let bench: LedgerBench;
let before: Row[];
let attacker: Database;

beforeEach(async () => {
  bench = await openLedger();
  for (let entry = 0; entry < 3; entry++) await bench.ledger.record(1, draft());
  before = bench.rows();
  attacker = bench.attacker();
});

afterEach(() => bench.close());

const hex = (bytes: Uint8Array | undefined) => `x'${Buffer.from(bytes ?? []).toString("hex")}'`;
const zeros = `x'${"00".repeat(32)}'`;
const last = () => hex(before.at(-1)?.leaf);

/** `INTO ledger …` with a row that is well formed except where the attack differs. */
function row(seq: number | string, prev: string, workspace = 1): string {
  return `INTO ledger (workspace_id, seq, prev, leaf, bytes) VALUES (${workspace}, ${seq}, ${prev}, x'01', '{}')`;
}

const ATTACKS: readonly (readonly [string, () => string])[] = [
  ["a change of an entry's bytes", () => "UPDATE ledger SET bytes = '{}' WHERE seq = 2"],
  ["a change of its leaf", () => "UPDATE main.ledger SET leaf = x'00' WHERE seq = 2"],
  ["a change of its number", () => "UPDATE ledger SET seq = 9 WHERE seq = 3"],
  ["a change of its workspace", () => "UPDATE ledger SET workspace_id = 2"],
  ["a change by REPLACE", () => "UPDATE OR REPLACE ledger SET seq = 1 WHERE seq = 2"],
  ["a change that is ignored on conflict", () => "UPDATE OR IGNORE ledger SET bytes = '{}'"],
  ["a change from another table", () => "UPDATE ledger SET bytes = m.value FROM meta m"],
  ["the removal of the last entry", () => "DELETE FROM ledger WHERE seq = 3"],
  ["the removal of all entries, which SQLite would do without looking at rows", () => "DELETE FROM ledger"],
  ["REPLACE of an entry", () => `REPLACE ${row(2, hex(before[0]?.leaf))}`],
  ["REPLACE of the last entry", () => `REPLACE ${row(3, hex(before[1]?.leaf))}`],
  ["INSERT OR REPLACE", () => `INSERT OR REPLACE ${row(1, zeros)}`],
  ["INSERT OR IGNORE", () => `INSERT OR IGNORE ${row(2, hex(before[0]?.leaf))}`],
  ["INSERT OR FAIL", () => `INSERT OR FAIL ${row(9, last())}`],
  ["an upsert", () => `INSERT ${row(2, hex(before[0]?.leaf))} ON CONFLICT DO UPDATE SET bytes = '{}'`],
  [
    "an upsert with the last entry's number",
    () =>
      `INSERT ${row(3, hex(before[1]?.leaf))} ON CONFLICT (workspace_id, seq) DO UPDATE SET bytes = excluded.bytes`,
  ],
  ["an entry before the first", () => `INSERT ${row(0, zeros)}`],
  ["an entry with a number below zero", () => `INSERT ${row(-1, zeros)}`],
  ["a gap", () => `INSERT ${row(5, last())}`],
  ["the largest possible number", () => `INSERT ${row("9223372036854775807", last())}`],
  ["no number", () => `INSERT ${row("NULL", last())}`],
  ["an entry that does not follow the last one", () => `INSERT ${row(4, hex(before[1]?.leaf))}`],
  ["an entry that follows nothing", () => `INSERT ${row(4, zeros)}`],
  ["no predecessor", () => `INSERT ${row(4, "NULL")}`],
  [
    "a predecessor as text",
    () => `INSERT ${row(4, `'${Buffer.from(before.at(-1)?.leaf ?? []).toString("hex")}'`)}`,
  ],
  ["a second first entry", () => `INSERT ${row(1, zeros)}`],
  ["a new chain that begins with 2", () => `INSERT ${row(2, zeros, 2)}`],
  ["a new chain that begins after something", () => `INSERT ${row(1, last(), 2)}`],
  ["a new chain with too short a predecessor", () => `INSERT ${row(1, "x'00'", 2)}`],
  ["two entries of which the second is wrong", () => `INSERT ${row(4, last())}, (1, 6, x'01', x'02', '{}')`],
];

describe.each([
  ["with a connection's default settings", () => {}],
  [
    "with recursive triggers off, so that REPLACE would delete unseen",
    () => attacker.exec("PRAGMA recursive_triggers = OFF"),
  ],
  [
    "with foreign keys and checks off",
    () => attacker.exec("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON"),
  ],
  [
    "with a temporary table shadowing the ledger, whose content the attacker chooses",
    () => {
      attacker.exec("CREATE TEMP TABLE decoy AS SELECT * FROM main.ledger");
      attacker.exec("CREATE TEMP VIEW meta AS SELECT 'x' AS key, '{}' AS value");
    },
  ],
])("the table refuses, %s:", (_, prepare) => {
  test.each(ATTACKS)("%s", (_, attack) => {
    prepare();
    expect(() => attacker.exec(attack())).toThrow();
    expect(bench.rows()).toEqual(before);
    expect(bench.rows(2)).toEqual([]);
  });
});

describe("a name that shadows the ledger does not mislead its guard:", () => {
  test.each([
    ["a temporary table", "CREATE TEMP TABLE ledger (workspace_id, seq, prev, leaf, bytes)"],
    [
      "a temporary view",
      "CREATE TEMP VIEW ledger AS SELECT 1 AS workspace_id, 8 AS seq, x'' AS prev, x'07' AS leaf, '' AS bytes",
    ],
  ])("%s", (_, decoy) => {
    attacker.exec(decoy);
    if (decoy.includes("TABLE")) attacker.exec("INSERT INTO temp.ledger VALUES (1, 8, x'', x'07', '')");
    expect(() =>
      attacker.exec(`INSERT ${row(9, "x'07'")}`.replace("INTO ledger", "INTO main.ledger")),
    ).toThrow("must follow");
    expect(() => attacker.exec("DELETE FROM main.ledger")).toThrow("never deleted");
    expect(bench.rows()).toEqual(before);
  });
});

test("the guards call no function that a caller could replace", () => {
  const triggers = attacker
    .query<{ sql: string }, []>(
      "SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'ledger'",
    )
    .all();
  expect(triggers).toHaveLength(3);
  for (const { sql } of triggers) {
    const called = [...sql.matchAll(/\b([A-Za-z_]\w*)\s*\(/g)].map((match) => match[1]?.toUpperCase());
    expect(
      called.filter((name) => name !== "RAISE" && name !== "EXISTS" && name !== "FROM" && name !== "NOT"),
    ).toEqual([...called.filter((name) => name === "AND")]);
  }
});

test("the ledger has no second unique key, on which a REPLACE would delete unseen", () => {
  const indexes = attacker.query<{ origin: string }, []>("PRAGMA index_list(ledger)").all();
  expect(indexes.map((index) => index.origin)).toEqual(["pk"]);
});

/**
 * What no database can prevent if the attacker may write its file. These tests record the effects, and `ledger
 * verify` has to detect them: the chain alone reveals the first, and only a checkpoint stored elsewhere reveals the
 * others.
 */
describe("with the guards dropped, which the database can't prevent,", () => {
  beforeEach(() => {
    for (const name of ["ledger_in_order", "ledger_no_update", "ledger_no_delete"])
      bench.own.exec(`DROP TRIGGER ${name}`);
  });

  test("a changed entry shows in the chain", () => {
    attacker.exec(`UPDATE ledger SET bytes = replace(bytes, 'test.note', 'test.lie') WHERE seq = 2`);
    expect(chainFaults(bench.rows())).toEqual(["2: is not what was hashed"]);
  });

  test("a removed entry shows in the chain", () => {
    attacker.exec("DELETE FROM ledger WHERE seq = 2");
    expect(chainFaults(bench.rows())).toEqual([
      "3: is out of its place",
      "3: does not follow the one before",
    ]);
  });

  test("a truncated end does not show in the chain", () => {
    attacker.exec("DELETE FROM ledger WHERE seq = 3");
    expect(chainFaults(bench.rows())).toEqual([]);
  });

  test("the writer notices a truncated end only if the guard still exists, and signs what it wrote itself", async () => {
    // The store accepts nothing after a foreign commit, so this bypasses SQLite.
    bench.own.exec("DELETE FROM ledger WHERE seq = 3");
    expect(await bench.ledger.record(1, draft())).toBe(4);
    expect(chainFaults(bench.rows())).toEqual([
      "4: is out of its place",
      "4: does not follow the one before",
    ]);
  });
});

describe("a foreign entry in the right place, which the database can't prevent,", () => {
  const attempt = () =>
    bench.ledger.record(1, draft()).catch((error: unknown) => String(error).split(":")[0]);

  test.each([`'{"ts":"2026-01-02T03:04:05.000Z"}'`, "'{}'", "'no JSON'", `'{"ts":"soon"}'`, "'null'"])(
    "lets nothing be appended after it: the writer's key has not signed it (%s)",
    async (bytes) => {
      // Bypasses SQLite, because the store accepts nothing after a foreign commit.
      bench.own.exec(`INSERT ${row(4, last())}`.replace("'{}'", bytes));
      expect([await attempt(), await attempt()]).toEqual(["StoreUnavailable", "StoreUnavailable"]);
      expect(bench.rows()).toHaveLength(4);
      expect(await bench.ledger.record(2, draft())).toBe(1);
    },
  );
});
