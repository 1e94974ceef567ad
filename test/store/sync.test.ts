/** When the log is on disk, and what happens if the disk fails to keep it. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { constants } from "node:fs";
import { open, readFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { OutcomeUnknown, StoreUnavailable } from "../../src/store/db.ts";
import { openSqlite, type SqliteDb } from "../../src/store/sqlite/open.ts";
import { tempDir } from "../support/process.ts";
import { SEALS } from "../support/seals.ts";
import { countCommits } from "./support.ts";

let directory: ReturnType<typeof tempDir>;
let path: string;

beforeEach(() => {
  directory = tempDir();
  path = join(directory.path, "gatehouse.db");
});

afterEach(() => directory.remove());

const openWith = (program: string) =>
  openSqlite(path, { seals: SEALS, syncWorker: new URL(program, import.meta.url) });
const WORKER = "../../src/store/sqlite/sync-worker.ts";

const write = (db: SqliteDb, value: number) =>
  db.tx(null, async (tx) => {
    await tx.run(
      "INSERT INTO meta (key, value) VALUES ('test', $1) ON CONFLICT (key) DO UPDATE SET value = $1",
      [String(value)],
    );
  });

const value = async (db: SqliteDb) =>
  Number((await db.get<{ value: string }>("SELECT value FROM meta WHERE key = 'test'"))?.value);

/** More commits than are made before the thread is started. */
const MANY = 300;

test("each commit is kept, before and after the thread has started", async () => {
  const db = openWith(WORKER);
  for (let count = 1; count <= MANY; count++) {
    await write(db, count);
    expect(await value(db)).toBe(count);
  }
  expect(countCommits(await readFile(`${path}-wal`))).toBeGreaterThan(0);
  await db.close();
  const again = openSqlite(path, { seals: SEALS });
  expect(await value(again)).toBe(MANY);
  await again.close();
});

test.skipIf(process.platform === "win32")(
  "commits do not wait for Bun's threads, which name servers that do not answer can occupy",
  async () => {
    const db = openWith(WORKER);
    for (let count = 1; count <= MANY; count++) await write(db, count);
    const pipes = Array.from({ length: 2 * availableParallelism() }, (_, index) =>
      join(directory.path, `pipe${index}`),
    );
    Bun.spawnSync(["mkfifo", ...pipes]);
    // Each occupies a thread until somebody writes into the pipe.
    const opening = pipes.map((pipe) => open(pipe, constants.O_RDONLY));
    let opened = 0;
    for (const each of opening) void each.then(() => (opened += 1));
    for (let count = 1; count <= 10; count++) await write(db, count);
    expect(await value(db)).toBe(10);
    expect(opened).toBe(0);
    Bun.spawnSync(["sh", "-c", `${pipes.map((pipe) => `: > ${pipe} &`).join(" ")} wait`]);
    for (const each of await Promise.all(opening)) await each.close();
    await db.close();
  },
);

test("after a sync has failed, nothing is written or read until the store is opened again", async () => {
  const db = openWith("./failing-disk.ts");
  const steps: string[] = [];
  let failure: unknown = null;
  let count = 0;
  while (failure === null && count < 10 * MANY) {
    count += 1;
    failure = await write(db, count).then(
      () => null,
      (error: unknown) => error,
    );
  }
  expect(failure).toBeInstanceOf(OutcomeUnknown);
  expect(db.mustReopen).toBe("sync_failed");
  const after = db.tx(
    null,
    async (tx) => {
      steps.push("begun");
      await tx.run("DELETE FROM meta");
    },
    { whileRefused: true },
  );
  await expect(after).rejects.toBeInstanceOf(StoreUnavailable);
  await expect(value(db)).rejects.toBeInstanceOf(StoreUnavailable);
  await expect(db.urgent.get("SELECT 1 AS one")).rejects.toBeInstanceOf(StoreUnavailable);
  expect(steps).toEqual([]);
  // Writing the log back would carry on with what the disk may have lost.
  const log = await readFile(`${path}-wal`);
  expect(await db.rewrite(1 << 30)).toBe(false);
  await db.close();
  expect(await readFile(`${path}-wal`)).toEqual(log);
  const again = openSqlite(path, { seals: SEALS });
  expect([count - 1, count]).toContain(await value(again));
  await again.close();
});
