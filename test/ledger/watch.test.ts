/** What others do to the store is recorded in every workspace's ledger, once, as soon as the store accepts it. */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { copyFileSync, renameSync, unlinkSync } from "node:fs";
import { createLog } from "../../src/base/log.ts";
import { LedgerWatch } from "../../src/ledger/watch.ts";
import { StoreUnavailable } from "../../src/store/db.ts";
import { until } from "../tasks/support.ts";
import { chainFaults, draft, type LedgerBench, openLedger } from "./support.ts";

let bench: LedgerBench;
let watch: LedgerWatch;
let attacker: Database;
let noticed: string[];
let lines: { readonly level: string; readonly message: string }[];
let workspaces: readonly number[];
let reasons: Set<string>;

beforeEach(async () => {
  bench = await openLedger();
  attacker = bench.attacker();
  noticed = [];
  lines = [];
  reasons = new Set();
  workspaces = [1, 2];
  watch = new LedgerWatch({
    db: bench.db,
    files: bench.db,
    ledger: bench.ledger,
    heads: bench.heads,
    clock: bench.clock,
    log: createLog("info", bench.clock, (line) => void lines.push(JSON.parse(line))),
    workspaceIds: () => workspaces,
    noticed: (kind) => void noticed.push(kind),
    mustReopen: (reason) => void reasons.add(reason),
  });
  watch.start();
});

afterEach(async () => {
  await watch.stop();
  await bench.close();
});

const write = () => attacker.exec("INSERT INTO meta (key, value) VALUES (hex(randomblob(8)), '')");

const entries = (workspaceId: number) =>
  bench.rows(workspaceId).map(({ bytes }) => JSON.parse(bytes) as Record<string, unknown>);

const errors = () => lines.filter(({ level }) => level === "error");

test("a foreign write is recorded within a second, in each ledger, once", async () => {
  await bench.ledger.record(1, draft());
  write();
  bench.clock.advance(1_000);
  await until(() => entries(2).length === 1);
  for (const workspace of [1, 2]) {
    expect(entries(workspace).at(-1)).toMatchObject({
      action: "ledger.foreign_write",
      outcome: "failed",
      channel: "system",
      actor: "system",
      phase: "single",
      detail: { commits: 1 },
    });
  }
  for (let seconds = 0; seconds < 5; seconds++) {
    bench.clock.advance(1_000);
    await watch.look();
  }
  expect([entries(1).length, entries(2).length]).toEqual([2, 1]);
  expect(noticed).toEqual(["foreign_write"]);
  expect([...reasons]).toEqual(["foreign_write"]);
  expect(errors()).toHaveLength(1);
  await expect(bench.ledger.record(1, draft())).rejects.toThrow("another program has written");
  write();
  await watch.look();
  expect(entries(2)).toHaveLength(2);
});

test("simultaneous checks share one check", async () => {
  write();
  await Promise.all([watch.look(), watch.look(), watch.look()]);
  expect(entries(1)).toHaveLength(1);
});

test("changes in the last second are seen at the end", async () => {
  write();
  await watch.stop();
  expect(entries(1)).toHaveLength(1);
});

test("nothing is appended after a foreign entry: the entry is reported, and other ledgers continue", async () => {
  await bench.ledger.record(1, draft());
  const [last] = bench.rows();
  const forged = {
    ...JSON.parse(last?.bytes ?? ""),
    seq: 2,
    prev: Buffer.from(last?.leaf ?? "").toString("hex"),
  };
  const bytes = JSON.stringify(forged);
  const leaf = new Bun.CryptoHasher("sha256").update(`\0${bytes}`).digest();
  attacker
    .query("INSERT INTO ledger (workspace_id, seq, prev, leaf, bytes) VALUES (1, 2, ?, ?, ?)")
    .run(last?.leaf ?? null, leaf, bytes);
  for (let looks = 0; looks < 3; looks++) await watch.look();
  await expect(bench.ledger.record(1, draft())).rejects.toThrow(StoreUnavailable);
  expect(entries(1)).toHaveLength(2);
  expect(entries(2)).toMatchObject([{ action: "ledger.foreign_write" }]);
  expect([...watch.continued]).toEqual([1]);
  expect(noticed).toEqual(["foreign_write", "foreign_entry"]);
  expect(errors().map(({ message }) => message)).toEqual([
    expect.stringContaining("another program has written to the database"),
    expect.stringContaining("has appended entries to a ledger"),
  ]);
  // Once the foreign entry is gone, the finding is recorded in this ledger too.
  attacker.exec("DROP TRIGGER ledger_no_delete; DELETE FROM ledger WHERE workspace_id = 1 AND seq = 2");
  await watch.look();
  expect([...watch.continued]).toEqual([]);
  expect(entries(1).map(({ action }) => action)).toEqual([
    "test.note",
    "ledger.foreign_write",
    "ledger.foreign_write",
  ]);
  expect(chainFaults(bench.rows())).toEqual([]);
});

describe("while nothing can be written", () => {
  const refuse = () =>
    attacker.exec("CREATE TRIGGER full BEFORE INSERT ON ledger BEGIN SELECT RAISE(ABORT, 'full'); END");

  test("findings wait, in order, and report how late they are", async () => {
    refuse();
    await watch.look();
    bench.clock.advance(10_000);
    write();
    await watch.look();
    const said = lines.length;
    for (let seconds = 0; seconds < 5; seconds++) await watch.look();
    // Reported once, not every second.
    expect(lines).toHaveLength(said);
    expect(entries(1)).toEqual([]);
    attacker.exec("DROP TRIGGER full");
    bench.clock.advance(2_000);
    await until(() => entries(2).length === 3);
    expect(entries(1).map(({ detail }) => detail)).toEqual([
      { commits: 1, late_ms: 12_000 },
      { commits: 1, late_ms: 2_000 },
      { commits: 1 },
    ]);
    expect(noticed).toHaveLength(3);
  });

  test("at most a thousand findings are kept; the others are in the log and the metrics", async () => {
    refuse();
    for (let events = 0; events < 1_010; events++) {
      write();
      await watch.look();
    }
    attacker.exec("DROP TRIGGER full");
    await watch.look();
    expect(noticed).toHaveLength(1_011);
    expect(errors()).toHaveLength(1_011);
    expect(entries(1)).toHaveLength(1_000);
  });
});

test("hundreds of workspaces are notified in a few transactions", async () => {
  workspaces = Array.from({ length: 300 }, (_, index) => index + 1);
  for (const id of workspaces.slice(2)) {
    await bench.db.tx(1, async (tx) => {
      await tx.run("INSERT INTO workspaces (id, name, created_at) VALUES ($1, $2, 0)", [id, `w${id}`]);
      await bench.ledger.begin(tx, id);
    });
  }
  write();
  await watch.look();
  for (const id of [1, 64, 65, 128, 300]) expect(entries(id)).toHaveLength(1);
});

describe("a database that is", () => {
  const away = () => `${bench.path}.away`;
  const others = () => bench.ledger.record(1, draft());

  test("moved: its last entry reports that, in its own file; then calls are refused", async () => {
    await others();
    renameSync(bench.path, away());
    bench.clock.advance(1_000);
    await until(() => lines.length > 0);
    await watch.look();
    await expect(others()).rejects.toThrow("is not in its place (moved)");
    copyFileSync(away(), `${away()}.alone`);
    const alone = new Database(`${away()}.alone`, { readonly: true });
    expect(alone.query("SELECT bytes FROM ledger WHERE workspace_id = 1 AND seq = 2").get()).toMatchObject({
      bytes: expect.stringContaining('"change":"moved"'),
    });
    alone.close();
    renameSync(away(), bench.path);
    await watch.look();
    await others();
    expect(entries(1).map(({ action, outcome, detail }) => [action, outcome, detail])).toEqual([
      ["test.note", "succeeded", undefined],
      ["ledger.file_moved", "failed", { file: "database", change: "moved" }],
      ["ledger.file_moved", "succeeded", { file: "database", change: "returned" }],
      ["test.note", "succeeded", undefined],
    ]);
    expect(noticed).toEqual(["file_moved", "file_moved"]);
  });

  test("deleted: nothing is recorded in a file that nobody would find, and it is logged once", async () => {
    await others();
    unlinkSync(bench.path);
    for (let seconds = 0; seconds < 5; seconds++) await watch.look();
    await expect(others()).rejects.toThrow("is not in its place (deleted)");
    expect(noticed).toEqual(["file_moved"]);
    expect(errors()).toHaveLength(1);
    expect(lines).toHaveLength(2);
    expect(await bench.db.get("SELECT COUNT(*) AS entries FROM ledger")).toEqual({ entries: 1 });
  });
});
