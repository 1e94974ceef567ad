/** A process that dies while old texts are erased: the next one completes the work. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { databasePath } from "../../src/store/directory.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { accounts, expiryOf } from "../ledger/payload-support.ts";
import { chainsOf, draft, listsOf, openLedger } from "../ledger/support.ts";
import { serveBriefly } from "../support/process.ts";
import { SEALS } from "../support/seals.ts";
import {
  clock,
  DAY_MS,
  directory,
  expired,
  faults,
  left,
  newDirectory,
  SOUND,
  script,
  start,
  stop,
  task,
  useDirectory,
} from "./expire-support.ts";
import { until } from "./support.ts";

// Each test waits for background work, on a machine that may be busy.
setDefaultTimeout(60_000);
useDirectory();

describe("a process that dies midway", () => {
  test("between any two transactions leaves a consistent store, and the next run completes the work", async () => {
    const bench = await openLedger();
    try {
      for (let n = 0; n < 300; n++) {
        await bench.db.tx(1, (tx) =>
          bench.ledger.append(tx, 1, { ...draft(), input: `in ${n}`, output: `out ${n}` }),
        );
      }
      bench.clock.advance(2 * DAY_MS);
      const copies: string[] = [];
      const copy = () => {
        const path = join(directory.path, String(copies.length), "gatehouse.db");
        mkdirSync(dirname(path));
        for (const end of ["", "-wal"]) cpSync(bench.path + end, path + end);
        copies.push(path);
      };
      copy();
      await expiryOf(bench, { after: copy }).run();
      expect(copies.length).toBeGreaterThan(9);
      for (const [n, path] of copies.entries()) {
        const db = openSqlite(path, { seals: SEALS });
        expect(await accounts(db)).toEqual([]);
        const { ledger, heads } = await chainsOf(db, dirname(bench.path), bench.clock);
        const later = { db, heads, clock: bench.clock, ledger, lists: listsOf(db, heads) };
        await expiryOf(later).run();
        expect(await accounts(db)).toEqual([]);
        const rows = await db.all<{ detail: string }>(
          "SELECT bytes->>'detail' AS detail FROM ledger WHERE bytes->>'action' = 'payload.expire'",
        );
        expect([n, rows.map(({ detail }) => JSON.parse(detail))]).toEqual([
          n,
          [{ payload_days: 1, payloads: 600, up_to: 300 }],
        ]);
        expect(await db.all("SELECT seq FROM payloads")).toEqual([]);
        await db.close();
      }
    } finally {
      await bench.close();
    }
  });

  test("after its entry, but before the files lose the texts, leaves that to the next start", async () => {
    script();
    await start();
    for (let n = 0; n < 60; n++) await task(`a heron of ${n}`);
    // The clock's timers are stopped from here on, so this gateway does not rewrite the files.
    clock.setWall(clock.now() + 300 * DAY_MS);
    await stop();
    await start();
    await until(async () => (await expired()).length > 0);
    const dead = newDirectory();
    cpSync(dead.path, directory.path, { recursive: true });
    await stop();
    dead.remove();
    const database = databasePath(directory.path);
    expect(existsSync(`${database}-wal`)).toBe(true);
    await start();
    await until(() => {
      clock.advance(1_000);
      return left("a heron of").length === 0;
    });
    expect(await faults()).toEqual(SOUND);
  });

  test("killed repeatedly while starting, erases each text once and records it", async () => {
    script();
    // A server with the system's clock must find these texts old.
    clock.setWall(Date.now() - 300 * DAY_MS);
    await start();
    for (let n = 0; n < 60; n++) await task(`a heron of ${n}`);
    await stop();
    const env = { GATEHOUSE_DATA: directory.path };
    for (const ms of [300, 450, 600, 750, 900]) await serveBriefly(ms, { cwd: directory.path, env });
    clock.setWall(Date.now());
    await start();
    const recorded = async () =>
      (await expired()).reduce((sum, { detail }) => sum + Number(detail?.payloads), 0);
    await until(async () => (await recorded()) >= 240);
    // If the last server died after the entry and before it rewrote the files, this one still has to do that.
    await until(() => {
      clock.advance(1_000);
      return left("a heron of").length === 0;
    });
    expect(await recorded()).toBe(240);
    expect(await faults()).toEqual(SOUND);
  });
});
