/** Each commit signs the head of each ledger. */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseHead } from "../../src/ledger/proof/head.ts";
import { migrate } from "../../src/store/sqlite/migrate.ts";
import { MIGRATIONS } from "../../src/store/sqlite/migrations/index.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { tempDir } from "../support/process.ts";
import { BEFORE_HEADS } from "./support.ts";
import { allFindings, copyOf, inShort, verify } from "./verify/scene.ts";

setDefaultTimeout(60_000);

describe("the head", () => {
  let directory: ReturnType<typeof tempDir>;
  let path: string;

  beforeEach(() => {
    directory = tempDir();
    path = join(directory.path, "gatehouse.db");
  });
  afterEach(() => directory.remove());

  const start = () => startGateway({ dataDir: directory.path });
  const read = (gateway: TestGateway, token?: string) =>
    gateway.call("GET", "/v1/agents", token === undefined ? {} : { token });

  function headIn(file: string, workspace: number): number {
    const database = new Database(file, { readonly: true });
    const row = database
      .query<{ note: string }, [number]>("SELECT note FROM ledger_heads WHERE workspace_id = ?")
      .get(workspace);
    database.close();
    return parseHead(row?.note ?? "").size;
  }

  test("matches what is on disk at any moment, in all workspaces, including a new one", async () => {
    const gateway = await start();
    const other = await gateway.workspace("other");
    for (let step = 0; step < 5; step++) {
      await Promise.all(Array.from({ length: 20 }, (_, n) => read(gateway, n % 2 ? other : undefined)));
      const copied = copyOf(directory.path);
      const sizes = new Map([1, 2].map((id) => [id, headIn(copied.path, id)]));
      const database = new Database(copied.path, { readonly: true });
      for (const [id, size] of sizes) {
        const row = database
          .query<{ size: number }, [number]>("SELECT MAX(seq) AS size FROM ledger WHERE workspace_id = ?")
          .get(id);
        expect(row?.size).toBe(size);
      }
      database.close();
      expect(allFindings(await verify(copied.path))).toEqual([]);
      // Like a start after a kill: the copy includes the write-ahead log.
      await (await startGateway({ dataDir: copied.dataDir })).stop();
      copied.remove();
    }
    await gateway.stop();
  });

  test("of an older directory is signed once, which adds an entry to each ledger", async () => {
    const fixture = readFileSync(join(import.meta.dir, "../store/fixtures/v1.sql"), "utf8");
    const old = new Database(path);
    old.exec(fixture);
    migrate(old, MIGRATIONS.slice(0, BEFORE_HEADS));
    const sizes = old
      .query<{ size: number }, []>(
        "SELECT MAX(seq) AS size FROM ledger GROUP BY workspace_id ORDER BY workspace_id",
      )
      .all()
      .map(({ size }) => size);
    old.close();
    expect((await verify(path)).verdict).toBe("undecided");
    const entries = () => {
      const database = new Database(path, { readonly: true });
      const rows = database
        .query<{ bytes: string }, []>("SELECT bytes FROM ledger ORDER BY workspace_id, seq")
        .all();
      database.close();
      return rows
        .map(({ bytes }) => JSON.parse(bytes) as { action: string; seq: number; detail: unknown })
        .filter(({ action }) => action === "ledger.sign_head");
    };
    for (let starts = 0; starts < 3; starts++) {
      await (await start()).stop();
      expect(entries().map(({ seq, detail }) => [seq, detail])).toEqual(
        sizes.map((size) => [size + 1, { size, checkpoint_size: 0 }]),
      );
    }
    expect(allFindings(await verify(path))).toEqual([]);
    expect(readFileSync(join(directory.path, "ledger.key"), "utf8")).toStartWith("This key signs the head");
  });

  test("is signed by the key in force: through rotations, a lost key, and a restart after each", async () => {
    const rotate = async (gateway: TestGateway) =>
      gateway.call("POST", "/operator/ledger/rotate-key", {
        token: gateway.gateway.operatorSecret,
        headers: { "gatehouse-operator": "tests" },
      });
    const first = await start();
    await first.workspace("other");
    await Promise.all([read(first), rotate(first), read(first), rotate(first), read(first)]);
    await first.stop();
    await (await start()).stop();
    rmSync(join(directory.path, "ledger.key"));
    await expect(start()).rejects.toThrow(/ledger\.key is missing/);
    const replaced = await startGateway({ dataDir: directory.path, replaceLostLedgerKey: true });
    await read(replaced);
    const key = (await replaced.call("GET", "/v1/ledger/key")).body.vkey as string;
    await replaced.stop();
    await (await start()).stop();
    expect(inShort(allFindings(await verify(path, { key })))).toEqual([
      expect.stringMatching(/^key_lost/),
      expect.stringMatching(/^key_lost/),
    ]);
  });

  test("of a copied directory, or one restored with its key, is valid; an older database is refused with a newer key", async () => {
    const gateway = await start();
    await read(gateway);
    await gateway.stop();
    const backup = tempDir();
    cpSync(directory.path, backup.path, { recursive: true });
    await (await startGateway({ dataDir: backup.path })).stop();
    const fixture = readFileSync(join(import.meta.dir, "../store/fixtures/v1.sql"), "utf8");
    rmSync(path);
    const old = new Database(path);
    old.exec(fixture);
    old.close();
    await expect(start()).rejects.toThrow(/the database is older than its key file/);
    const keyFile = join(directory.path, "ledger.key");
    // The key files as the previous version left them.
    const unmarked = readFileSync(keyFile, "utf8").replace(/^.*\n/, "");
    writeFileSync(keyFile, unmarked, { mode: 0o600 });
    const secretFile = join(directory.path, "secrets.key");
    const secret = readFileSync(secretFile, "utf8").replace(/^This .*\n/, "");
    writeFileSync(secretFile, secret, { mode: 0o600 });
    await (await start()).stop();
    backup.remove();
  });

  test.each<[string, () => void]>([
    ["was removed", () => rmSync(path)],
    ["was emptied", () => writeFileSync(path, "")],
  ])("of a database that %s is missing: a new ledger needs a new key", async (_, remove) => {
    const gateway = await start();
    await read(gateway);
    await gateway.stop();
    remove();
    await expect(start()).rejects.toThrow(
      "there is no ledger, although the key of this data directory has signed one",
    );
    // The refused start left a database, but that is not a ledger either.
    await expect(start()).rejects.toThrow(
      "there is no ledger, although the key of this data directory has signed one",
    );
    rmSync(join(directory.path, "ledger.key"));
    rmSync(path);
    await (await start()).stop();
    expect((await verify(path)).verdict).toBe("holds");
  });
});
