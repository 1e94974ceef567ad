/**
 * Decisions that take effect before they can be written: in order, all or nothing, and only as many as fit in memory.
 */
import type { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { createLog } from "../../src/base/log.ts";
import { LateRecords } from "../../src/gate/unwritten-decisions.ts";
import type { Tx } from "../../src/store/db.ts";
import { draft, type LedgerBench, openLedger } from "../ledger/support.ts";
import { until } from "../tasks/support.ts";

let bench: LedgerBench;
let file: Database;
let late: LateRecords;
let lines: { readonly level: string; readonly message: string; readonly name?: string }[];

beforeEach(async () => {
  bench = await openLedger();
  file = bench.own;
  lines = [];
  const log = createLog("info", bench.clock, (line) => void lines.push(JSON.parse(line)));
  late = new LateRecords(bench.db, bench.clock, log);
  refuse();
});

afterEach(async () => {
  await late.stop();
  await bench.close();
});

/** To the store, a refusing trigger looks like a full disk. */
const refuse = () =>
  file.exec("CREATE TRIGGER full BEFORE INSERT ON ledger BEGIN SELECT RAISE(ABORT, 'full'); END");
const allow = () => file.exec("DROP TRIGGER full");

/** Writes an effect and then its evidence. */
const write = (name: string) => async (tx: Tx) => {
  await tx.run("INSERT INTO meta (key, value) VALUES ($1, '')", [`decided/${name}`]);
  await bench.ledger.append(tx, 1, draft({ action: `decision.${name}` }));
};

const keep = (name: string) => late.keep({ workspaceId: 1, write: write(name), facts: { name } });

const recorded = () => bench.rows().map(({ bytes }) => JSON.parse(bytes).action.slice("decision.".length));

const effects = () =>
  file
    .query<{ key: string }, []>("SELECT key FROM meta WHERE key LIKE 'decided/%' ORDER BY key")
    .all()
    .map(({ key }) => key.slice("decided/".length));

test("effect and evidence appear only together, by themselves and in order", async () => {
  for (const name of ["a", "b", "c"]) keep(name);
  for (let seconds = 0; seconds < 3; seconds++) {
    bench.clock.advance(1_000);
    await expect(late.flush()).rejects.toThrow("cannot be written");
  }
  expect([recorded(), effects(), late.size]).toEqual([[], [], 3]);
  allow();
  bench.clock.advance(1_000);
  await until(() => late.size === 0);
  expect([recorded(), effects()]).toEqual([
    ["a", "b", "c"],
    ["a", "b", "c"],
  ]);
});

test("the log reports once that a decision is waiting, and once that it is recorded", async () => {
  keep("a");
  for (let seconds = 0; seconds < 5; seconds++) {
    bench.clock.advance(1_000);
    await late.flush().catch(() => {});
  }
  allow();
  await late.flush();
  expect(lines.map(({ level, message }) => `${level} ${message}`)).toEqual([
    "warn a decision is in effect but not recorded yet",
    "info a decision was recorded late",
  ]);
});

test("one that cannot be written for its own reasons does not delay the others", async () => {
  keep("a");
  late.keep({ workspaceId: 1, write: () => Promise.reject(new Error("a fault")), facts: { name: "faulty" } });
  keep("b");
  allow();
  await late.flush();
  expect(recorded()).toEqual(["a", "b"]);
  expect(lines.find(({ level }) => level === "error")).toMatchObject({ name: "faulty" });
});

test("at most ten thousand wait; the next one is refused and logged", async () => {
  for (let count = 0; count < 10_000; count++)
    late.keep({ workspaceId: 1, write: write(String(count)), facts: {} });
  const refused = () => late.keep({ workspaceId: 1, write: write("one more"), facts: { name: "one more" } });
  expect(refused).toThrow(expect.objectContaining({ status: 503, code: "ledger_unavailable" }));
  expect(lines.at(-1)).toMatchObject({ level: "error", name: "one more" });
  expect(late.size).toBe(10_000);
});

test("at the end they are tried once more; any that are lost then are logged", async () => {
  keep("a");
  keep("b");
  await late.stop();
  expect(late.size).toBe(0);
  const lost = lines.filter(({ level }) => level === "error");
  expect(lost.map(({ name }) => name)).toEqual(["a", "b"]);
  keep("c");
  allow();
  await late.stop();
  expect(recorded()).toEqual(["c"]);
});
