import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemRandom } from "../../src/base/ids.ts";
import { type Log, silentLog } from "../../src/base/log.ts";
import { CheckpointFile } from "../../src/ledger/checkpoints/file.ts";
import type { EntryDraft } from "../../src/ledger/entry.ts";
import { nodeHeadStore } from "../../src/ledger/heads/open-node-heads.ts";
import { SigningKeyFile } from "../../src/ledger/keys/file.ts";
import { rotateKey } from "../../src/ledger/keys/rotation.ts";
import { type OpenLedger, openLedger } from "../../src/ledger/open.ts";
import { parseCheckpoints, parseSignedCheckpoint } from "../../src/ledger/proof/checkpoint.ts";
import { TreeReader } from "../../src/ledger/tiles.ts";
import { localNodes } from "../../src/nodes/local-nodes.ts";
import { openSqlite, type SqliteDb } from "../../src/store/sqlite/open.ts";
import { FakeClock } from "../support/clock.ts";
import { tempDir } from "../support/process.ts";
import { SEALS } from "../support/seals.ts";

const WORKSPACES = [
  { id: 1, name: "one" },
  { id: 2, name: "two" },
];
const DRAFT: EntryDraft = {
  phase: "single",
  action: "a.read",
  outcome: "succeeded",
  channel: "system",
  actor: "system",
};

let directory: ReturnType<typeof tempDir>;
let db: SqliteDb;
let clock: FakeClock;
let open: OpenLedger;
let published: { workspaceId: number; size: number }[];

beforeEach(async () => {
  directory = tempDir();
  clock = new FakeClock();
  db = openSqlite(join(directory.path, "gatehouse.db"), { seals: SEALS, rerunWork: true });
  for (const { id, name } of WORKSPACES) {
    await db.run("INSERT INTO workspaces (id, name, created_at) VALUES ($1, $2, 0)", [id, name]);
  }
  await start();
  for (const { id } of WORKSPACES) await settled(id, []);
});
afterEach(async () => {
  await open.checkpoints.stop();
  await db.close();
  directory.remove();
});

const filePath = () => join(directory.path, "checkpoints");

async function start(log: Log = silentLog): Promise<void> {
  published = [];
  // Reopen the store like a new process, because a process keeps the ends of its ledgers in memory.
  await db.close();
  db = openSqlite(join(directory.path, "gatehouse.db"), { seals: SEALS, rerunWork: true });
  open = await openLedger({
    db,
    headStore: nodeHeadStore,
    nodes: localNodes("node_test", clock),
    keyStore: new SigningKeyFile(directory.path),
    config: { checkpointEvery: 8, checkpointSeconds: 10, checkpointFile: filePath(), payloadDays: 180 },
    clock,
    random: systemRandom,
    log,
    noticed: () => {},
    workspaces: () => WORKSPACES,
    nameOf: (id) => WORKSPACES.find((each) => each.id === id)?.name ?? "",
    replaceLostKey: false,
  });
  open.checkpoints.published.listen(({ workspaceId, head }) => {
    published.push({ workspaceId, size: head.size });
  });
  open.checkpoints.start();
}

async function append(count: number, workspaceId = 1): Promise<void> {
  await Promise.all(Array.from({ length: count }, () => open.ledger.record(workspaceId, DRAFT)));
}

async function stored(workspaceId = 1): Promise<number[]> {
  const rows = await db.all<{ size: number; note: string }>(
    "SELECT size, note FROM ledger_checkpoints WHERE workspace_id = $1 ORDER BY size",
    [workspaceId],
  );
  for (const { size, note } of rows) {
    const { checkpoint } = parseSignedCheckpoint(note);
    expect(checkpoint.size).toBe(size);
    expect(checkpoint.root).toEqual(await new TreeReader(db, workspaceId).root(size));
  }
  // The first start signed the empty trees.
  expect(rows[0]?.size).toBe(0);
  return rows.slice(1).map(({ size }) => size);
}

async function count(workspaceId: number): Promise<number> {
  const row = await db.get<{ rows: number }>(
    "SELECT COUNT(*) AS rows FROM ledger_checkpoints WHERE workspace_id = $1",
    [workspaceId],
  );
  return row?.rows ?? 0;
}

/**
 * Waits for checkpoints that are due. They are signed in the background, within one more turn of the store's queue.
 */
async function settled(workspaceId: number, wanted: readonly number[]): Promise<void> {
  for (let turn = 0; turn < 1_000 && (await count(workspaceId)) <= wanted.length; turn++) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(await stored(workspaceId)).toEqual([...wanted]);
}

test("one every given number of entries, at the same sizes even if entries come in large groups", async () => {
  await append(7);
  await settled(1, []);
  await append(1);
  await settled(1, [8]);
  await append(30);
  await settled(1, [8, 16, 24, 32]);
  expect(published.at(-1)).toEqual({ workspaceId: 1, size: 32 });
});

test("more than one transaction can write", async () => {
  await append(8 * 150 + 3);
  await settled(
    1,
    Array.from({ length: 150 }, (_, index) => (index + 1) * 8),
  );
});

test("one every given number of seconds if there is something new, and otherwise none", async () => {
  await append(3);
  clock.advance(9_999);
  await settled(1, []);
  clock.advance(1);
  await settled(1, [3]);
  clock.advance(60_000);
  await append(1, 2);
  clock.advance(10_000);
  await settled(2, [1]);
  expect(await stored(1)).toEqual([3]);
  await append(8);
  await settled(1, [3, 11]);
});

test("closing signs the rest; a start continues from there", async () => {
  await append(5);
  await open.checkpoints.stop();
  expect(await stored()).toEqual([5]);
  await start();
  await append(7);
  await settled(1, [5]);
  await append(1);
  await settled(1, [5, 13]);
});

test("entries unsigned when the process died are signed at the next start", async () => {
  await append(3);
  const { checkpoints } = open;
  await start();
  await settled(1, [3]);
  await checkpoints.stop();
});

test("the file receives all of them, for all workspaces", async () => {
  await append(17);
  await append(8, 2);
  await open.checkpoints.stop();
  const found = parseCheckpoints(readFileSync(filePath(), "utf8")).map(({ checkpoint }) => [
    checkpoint.origin.split("/").at(-1),
    checkpoint.size,
  ]);
  expect(found.sort()).toEqual([
    ["one", 0],
    ["one", 16],
    ["one", 17],
    ["one", 8],
    ["two", 0],
    ["two", 8],
  ]);
});

test("an unwritable file is reported once, and gets the missing notes as soon as possible", async () => {
  const said: string[] = [];
  const log: Log = {
    ...silentLog,
    error: (message) => void said.push(message),
    info: (message) => void said.push(message),
  };
  const path = join(directory.path, "other");
  mkdirSync(path);
  const file = new CheckpointFile(path, log);
  file.append(["one\n"]);
  for (let turn = 0; turn < 1_000 && said.length === 0; turn++)
    await new Promise((resolve) => setTimeout(resolve, 1));
  file.append(["two\n"]);
  rmSync(path, { recursive: true });
  file.append(["three\n"]);
  await file.close();
  expect(readFileSync(path, "utf8")).toBe("one\n\ntwo\n\nthree\n\n");
  expect(said).toEqual([
    "checkpoints cannot be written to their file",
    "checkpoints are written to their file again",
  ]);
});

test("a full disk under the file blocks nothing else", async () => {
  const said: string[] = [];
  const file = new CheckpointFile("/dev/full", { ...silentLog, error: (message) => void said.push(message) });
  file.append(["one\n"]);
  await file.close();
  expect(said).toEqual([
    "checkpoints cannot be written to their file",
    "some checkpoints could not be written to their file",
  ]);
});

test("a rule other than the default is recorded once for each change", async () => {
  const rules = async () =>
    (await db.all<{ bytes: string }>("SELECT bytes FROM ledger WHERE workspace_id = 1 ORDER BY seq")).map(
      ({ bytes }) => JSON.parse(bytes),
    );
  await open.checkpoints.recordRule();
  await open.checkpoints.recordRule();
  expect(await rules()).toMatchObject([
    { action: "config.change", detail: { checkpoint_every: 8, checkpoint_seconds: 10 } },
  ]);
});

test("existing content of the file stays", async () => {
  await open.checkpoints.stop();
  writeFileSync(filePath(), "kept\n");
  await start();
  await append(8);
  await open.checkpoints.stop();
  expect(readFileSync(filePath(), "utf8")).toStartWith("kept\n");
});

test("a ledger that differs from the signed one is not signed again: the start is refused", async () => {
  await append(20);
  await open.checkpoints.stop();
  await db.run("DROP TRIGGER ledger_no_update");
  await db.run("UPDATE ledger SET leaf = $1 WHERE workspace_id = 1 AND seq = 3", [new Uint8Array(32)]);
  await expect(start()).rejects.toThrow(/has an entry 3 that is not the one that was signed/);
  await db.run("DROP TRIGGER ledger_no_delete");
  await db.run("DELETE FROM ledger WHERE workspace_id = 1 AND seq > 19");
  await expect(start()).rejects.toThrow(/has 19 entries, but 20 were signed/);
});

test("a rotation of the key leaves an entry and a checkpoint of both keys in each ledger", async () => {
  await append(8);
  await append(2, 2);
  const before = open.keys.verifierKeys("one").current;
  await rotateKey(open.rotation, { actor: "user:ada", channel: "rest" });
  const { current } = open.keys.verifierKeys("one");
  expect(await stored(1)).toEqual([8, 9]);
  expect(await stored(2)).toEqual([3]);
  const rows = await db.all<{ note: string }>(
    "SELECT note FROM ledger_checkpoints WHERE workspace_id = 1 ORDER BY size",
  );
  const signatures = rows.map(({ note }) => parseSignedCheckpoint(note).note.signatures.length);
  expect(signatures).toEqual([1, 1, 2]);
  const entry = await db.get<{ bytes: string }>(
    "SELECT bytes FROM ledger WHERE workspace_id = 1 AND seq = 9",
  );
  expect(JSON.parse(entry?.bytes ?? "")).toMatchObject({
    action: "ledger.rotate_key",
    actor: "user:ada",
    detail: { from: before, to: current },
  });
  await append(8);
  await settled(1, [8, 9, 17]);
});

test("checkpoints in the database are never changed, deleted or inserted before others", async () => {
  await append(8);
  await settled(1, [8]);
  for (const sql of [
    "UPDATE ledger_checkpoints SET note = 'x'",
    "DELETE FROM ledger_checkpoints",
    "INSERT INTO ledger_checkpoints VALUES (1, 8, 'x', 0)",
    "INSERT OR REPLACE INTO ledger_checkpoints VALUES (1, 8, 'x', 0)",
    "INSERT INTO ledger_checkpoints VALUES (1, 4, 'x', 0)",
  ]) {
    await expect(db.run(sql)).rejects.toThrow();
  }
  expect(await stored()).toEqual([8]);
});
