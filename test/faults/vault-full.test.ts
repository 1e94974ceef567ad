/**
 * The disk fills up in the middle of a document, or the store cannot be written: the answer is 503, and nothing is
 * left half-done.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createIds, systemRandom } from "../../src/base/ids.ts";
import { silentLog } from "../../src/base/log.ts";
import { localNodes } from "../../src/nodes/local-nodes.ts";
import type { SqlValue, Tx } from "../../src/store/db.ts";
import { databasePath } from "../../src/store/directory.ts";
import { Forgetting } from "../../src/store/forgetting.ts";
import { openSqlite, type SqliteDb } from "../../src/store/sqlite/open.ts";
import { openVault, type Vault } from "../../src/vault/vault.ts";
import { FakeClock } from "../support/clock.ts";
import { startGateway } from "../support/gateway.ts";
import { ownConnection } from "../support/own-connection.ts";
import { SEALS } from "../support/seals.ts";
import { longText, write as writeOver } from "../support/vault.ts";
import { until } from "../tasks/support.ts";
import { vaultFaults } from "./vault-support.ts";

let directory: string;
let path: string;
let clock: FakeClock;
let db: SqliteDb;
/** The same store, counting into `slices`. */
let counted: SqliteDb;
let vault: Vault;
/** Passages that each transaction wrote or removed. */
let slices: { written: number; removed: number }[];

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "gatehouse-full-"));
  path = databasePath(directory);
  clock = new FakeClock();
  slices = [];
  await open();
});

afterEach(async () => {
  await vault.stop();
  await db.close();
  rmSync(directory, { recursive: true, force: true });
});

async function open(): Promise<void> {
  db = openSqlite(path, { libraries: directory, seals: SEALS });
  await db.run(
    "INSERT INTO workspaces (id, name, created_at) VALUES (1, 'default', 0) ON CONFLICT DO NOTHING",
  );
  counted = counting(db);
  vault = await openVault({
    db: counted,
    nodes: localNodes("node", clock),
    clock,
    ids: createIds(clock, systemRandom),
    log: silentLog,
    random: systemRandom,
    forgetting: new Forgetting({ files: counted, clock, log: silentLog }),
    index: { engine: "sqlite", database: path, extension: db.vectors.path },
    program: new URL("../../src/vault/worker.ts", import.meta.url),
    main: new URL("../../src/main.ts", import.meta.url),
    reading: { readers: 2, mostMs: 120_000, memoryBytes: 1_073_741_824 },
    embedder: null,
    formerEmbedder: async () => null,
  });
  await vault.start();
}

/** Wraps the store and counts what passes through each transaction. */
function counting(store: SqliteDb): SqliteDb {
  const noted = (
    slice: { written: number; removed: number },
    sql: string,
    params: readonly SqlValue[] = [],
  ) => {
    if (sql.startsWith("INSERT INTO vault_chunks")) slice.written++;
    if (sql.startsWith("DELETE FROM vault_chunks"))
      slice.removed += Number(params[1]) - Number(params[0]) + 1;
  };
  const count = (tx: Tx, slice: { written: number; removed: number }): Tx => ({
    seals: tx.seals,
    ledgers: tx.ledgers,
    lockedTails: tx.lockedTails,
    all: (sql, params) => tx.all(sql, params),
    get: (sql, params) => tx.get(sql, params),
    onRollback: (undo) => tx.onRollback(undo),
    onCommit: (done) => tx.onCommit(done),
    shared: (kind) => tx.shared(kind),
    run(sql, params) {
      noted(slice, sql, params);
      return tx.run(sql, params);
    },
    write(sql, params) {
      noted(slice, sql, params);
      tx.write(sql, params);
    },
  });
  return {
    ...store,
    tx: (ledgers, work, options) =>
      store.tx(
        ledgers,
        (tx) => {
          const slice = { written: 0, removed: 0 };
          slices.push(slice);
          return work(count(tx, slice));
        },
        options,
      ),
  };
}

const boundary = ["/"];

async function write(text: string, id?: string): Promise<string> {
  const { document } = await vault.write(
    {
      workspaceId: 1,
      boundary,
      id,
      title: "A title",
      scope: "shelf",
      sourceUri: null,
      metadata: { kind: "test" },
      content: { kind: "text", text, type: "text/plain" },
      createdBy: "tests",
    },
    (work) => counted.tx(1, (tx) => work(tx, boundary)),
    () => {},
  );
  return document.id;
}

const remove = (id: string) =>
  vault.remove(1, boundary, id, (work) => counted.tx(1, (tx) => work(tx, boundary)));

async function find(query: string): Promise<string[]> {
  const { passages } = await vault.search({
    workspaceId: 1,
    boundary,
    query,
    topK: 10,
    mode: "keyword",
    filter: {},
    maxCharacters: null,
    recency: null,
    explain: false,
  });
  return passages.map(({ documentId }) => documentId);
}

/** The error's name, or null. */
async function failure(work: Promise<unknown>): Promise<string | null> {
  return work.then(
    () => null,
    (error: Error) => error.name,
  );
}

/** Limits the file's pages, so SQLite answers as on a full disk: SQLITE_FULL, and the transaction is rolled back. */
async function fill(morePages: number): Promise<void> {
  const size = await db.tx(1, (tx) => tx.get<{ page_count: number }>("PRAGMA page_count"));
  await db.tx(1, (tx) => tx.get(`PRAGMA max_page_count = ${(size?.page_count ?? 0) + morePages}`));
}

const makeRoom = () => db.tx(1, (tx) => tx.get("PRAGMA max_page_count = 1000000"));

async function whole(): Promise<void> {
  await db.forget();
  expect(vaultFaults(path)).toEqual([]);
}

describe("a full disk", () => {
  test.each([0, 2, 8, 40, 120])(
    "that fills up %d pages later keeps nothing of a long document, and the next one works",
    async (pages) => {
      const first = await write("A sloop has one mast.");
      await fill(pages);
      expect(await failure(write(longText("slab", 300)))).toBe("StoreUnavailable");
      expect(await find("slab1x1")).toEqual([]);
      expect(await find("sloop")).toEqual([first]);
      await makeRoom();
      // The part that was written is removed once there is room.
      await until(async () => {
        clock.advance(5_000);
        return (await db.get("SELECT 1 FROM vault_documents WHERE state <> 'live'")) === undefined;
      });
      await whole();
      const again = await write(longText("slab", 300));
      expect(await find("slab299x1")).toEqual([again]);
      await whole();
    },
  );

  test("keeps the old document if it was to be replaced", async () => {
    const id = await write(longText("old", 40));
    await fill(3);
    expect(await failure(write(longText("new", 300), id))).toBe("StoreUnavailable");
    expect(await failure(write("A short one.", id))).toBeOneOf([null, "StoreUnavailable"]);
    await makeRoom();
    const document = await vault.find(1, boundary, id);
    expect([longText("old", 40), "A short one."]).toContain(await vault.text(document));
    await until(async () => {
      clock.advance(5_000);
      return (await db.get("SELECT 1 FROM vault_documents WHERE state <> 'live'")) === undefined;
    });
    await whole();
  });
});

test.each([
  ["vault_chunks", "INSERT", "POST"],
  ["vault_documents", "UPDATE", "DELETE"],
] as const)(
  "over HTTP a refusal of %s is 503 with Retry-After, and nothing is done",
  async (table, event, method) => {
    const gateway = await startGateway();
    const send = () =>
      method === "POST"
        ? gateway.call("POST", "/v1/vault/documents", {
            body: { title: "B", text: "a yawl", scope: "shelf" },
          })
        : gateway.call("DELETE", `/v1/vault/documents/${first.id}?payloads=true`);
    const first = await writeOver(gateway, { title: "A", text: "a sloop" });
    const file = ownConnection(gateway.dataDir);
    file.run(`CREATE TRIGGER full BEFORE ${event} ON ${table} BEGIN SELECT RAISE(ABORT, 'full'); END`);
    const refused = await send();
    expect([refused.status, refused.body.code]).toEqual([503, "ledger_unavailable"]);
    expect(refused.headers.get("retry-after")).toBe("5");
    const { body } = await gateway.call("GET", "/v1/vault/documents");
    expect(body.data.map(({ id }: { id: string }) => id)).toEqual([first.id]);
    expect(file.query("SELECT * FROM meta WHERE key LIKE 'quoted/%'").all()).toEqual([]);
    file.run("DROP TRIGGER full");
    expect((await send()).status).toBe(method === "POST" ? 201 : 204);
    const faults = databasePath(gateway.dataDir);
    await gateway.gateway.stop();
    expect(vaultFaults(faults)).toEqual([]);
    rmSync(gateway.dataDir, { recursive: true });
  },
);

test("a store that became read-only accepts nothing and loses nothing, and works once it can be written again", async () => {
  const id = await write(longText("old", 20));
  await db.tx(1, (tx) => tx.get("PRAGMA query_only = ON"));
  expect(await failure(write(longText("new", 5)))).toBe("StoreUnavailable");
  expect(await failure(write(longText("new", 300)))).toBe("StoreUnavailable");
  expect(await failure(write("short", id))).toBe("StoreUnavailable");
  expect(await failure(remove(id))).toBe("StoreUnavailable");
  expect(await find("old5x5")).toEqual([id]);
  await reopenWritable();
  expect(await vault.text(await vault.find(1, boundary, id))).toBe(longText("old", 20));
  await remove(id);
  expect(await find("old5x5")).toEqual([]);
  await whole();
});

/** By then even `BEGIN IMMEDIATE` is refused, so the store is reopened, as after an operator's remount. */
async function reopenWritable(): Promise<void> {
  await vault.stop();
  await db.close();
  await open();
}

test("no transaction writes or removes more than 32 passages, however long the document", async () => {
  const id = await write(longText("slab", 600));
  const document = await vault.find(1, boundary, id);
  expect(document.chunks).toBeGreaterThan(300);
  await write(longText("other", 400), id);
  await remove(id);
  expect(Math.max(...slices.map(({ written }) => written))).toBe(32);
  expect(Math.max(...slices.map(({ removed }) => removed))).toBe(32);
  expect(slices.reduce((sum, { written }) => sum + written, 0)).toBeGreaterThan(document.chunks);
  await whole();
});
