/** A start of a newer version keeps a backup of what it upgrades, and an older version names the way back. */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { silentLog } from "../../../src/base/log.ts";
import { backUpBeforeUpgrade } from "../../../src/store/backup/before-upgrade.ts";
import { unpackBackup } from "../../../src/store/backup/unpack.ts";
import { databasePath } from "../../../src/store/directory.ts";
import { SCHEMA_VERSION } from "../../../src/store/sqlite/migrate.ts";
import { startGateway } from "../../support/gateway.ts";
import { tempDir } from "../../support/process.ts";

let directory: ReturnType<typeof tempDir>;
beforeEach(() => {
  directory = tempDir();
});
afterEach(() => directory.remove());
const at = (...parts: string[]) => join(directory.path, ...parts);

/** A data directory of the first schema, as an earlier version left it. */
function firstSchema(): string {
  mkdirSync(at("data"), { mode: 0o700 });
  const database = new Database(databasePath(at("data")));
  database.exec(readFileSync(join(import.meta.dir, "..", "fixtures", "v1.sql"), "utf8"));
  database.close();
  return at("data");
}

function setVersion(version: number): void {
  const database = new Database(databasePath(at("data")));
  database.run(`PRAGMA user_version = ${version}`);
  database.close();
}

const entriesOf = (path: string) => {
  const database = new Database(path, { readonly: true });
  const rows = database.query("SELECT * FROM ledger ORDER BY workspace_id, seq").all();
  const { user_version: version } =
    database.query<{ user_version: number }, []>("PRAGMA user_version").get() ?? {};
  database.close();
  return { rows, version };
};

test("an upgrade keeps what was there before", async () => {
  const dataDir = firstSchema();
  const before = entriesOf(databasePath(dataDir));
  const gateway = await startGateway({ dataDir, isOnFiles: true });
  await gateway.stop();
  const backup = join(dataDir, "before-upgrade-from-1.tar");
  expect(statSync(backup).mode & 0o777).toBe(0o600);
  expect(readdirSync(dataDir).filter((name) => /partial|backup-/.test(name))).toEqual([]);
  mkdirSync(at("back"));
  const manifest = await unpackBackup({ file: Bun.file(backup), directory: at("back"), progress() {} });
  expect(manifest).toMatchObject({ with_keys: false, database: { schema: 1 } });
  expect(entriesOf(databasePath(at("back")))).toEqual(before);
});

test("a first start, and one of the same version, keep nothing", async () => {
  for (const _ of [1, 2]) {
    const gateway = await startGateway({ dataDir: mkdir("data"), isOnFiles: true });
    await gateway.stop();
  }
  expect(readdirSync(at("data")).filter((name) => name.endsWith(".tar"))).toEqual([]);
});

function mkdir(name: string): string {
  mkdirSync(at(name), { recursive: true });
  return at(name);
}

const parts = (upgradeBackup: string | null) => ({
  ...{ dataDir: at("data"), upgradeBackup, now: new Date(), log: silentLog },
});

test("only the backup of the newest upgrade is kept, and no other file is removed", async () => {
  firstSchema();
  mkdir("kept");
  const others = ["before-upgrade-none-from-x.tar", "before-upgrade-0a-from-0.tar", "mine.tar"];
  for (const name of ["before-upgrade-none-from-0.tar", ...others]) writeFileSync(at("kept", name), "");
  await backUpBeforeUpgrade(parts(at("kept")));
  expect(readdirSync(at("kept")).sort()).toEqual(["before-upgrade-none-from-1.tar", ...others].sort());
});

test("with upgrade_backup off, none is made", async () => {
  firstSchema();
  await backUpBeforeUpgrade(parts(null));
  expect(readdirSync(at("data"))).toEqual(["gatehouse.db"]);
});

test("if it cannot be written, nothing is upgraded", async () => {
  const dataDir = firstSchema();
  writeFileSync(at("file"), "");
  const yaml = `upgrade_backup: ${at("file")}\n`;
  const start = startGateway({ dataDir, isOnFiles: true, yaml });
  await expect(start).rejects.toThrow(
    /the backup before the upgrade cannot be written to .*nothing was upgraded/,
  );
  expect(entriesOf(databasePath(dataDir)).version).toBe(1);
  expect(existsSync(join(dataDir, "before-upgrade-from-1.tar"))).toBe(false);
});

test("what killed starts have left is replaced or removed", async () => {
  firstSchema();
  for (const end of ["", ".partial"]) writeFileSync(at("data", `before-upgrade-from-1.tar${end}`), "half");
  for (const [name, hoursAgo] of [
    ["old", 25],
    ["new", 23],
  ] as const) {
    const path = at("data", `.gatehouse-backup-${name}`);
    mkdirSync(path);
    writeFileSync(join(path, "copy"), "a whole database");
    const time = new Date(Date.now() - hoursAgo * 3_600_000);
    utimesSync(path, time, time);
  }
  await backUpBeforeUpgrade(parts(at("data")));
  expect(readdirSync(at("data")).sort()).toEqual([
    ".gatehouse-backup-new",
    "before-upgrade-from-1.tar",
    "gatehouse.db",
  ]);
  mkdir("back");
  const file = Bun.file(at("data", "before-upgrade-from-1.tar"));
  expect(await unpackBackup({ file, directory: at("back"), progress() {} })).toMatchObject({
    database: { schema: 1 },
  });
});

test("a newer database is refused, and the way back is named if there is one", async () => {
  const dataDir = firstSchema();
  setVersion(SCHEMA_VERSION + 1);
  const hint = async () => {
    const refused: unknown = await backUpBeforeUpgrade(parts(dataDir)).catch((error: unknown) => error);
    return refused as { message: string; hint: string };
  };
  expect(await hint()).toMatchObject({
    message: expect.stringContaining(`written by a newer Gatehouse (schema ${SCHEMA_VERSION + 1}`),
    hint: "run the newer version, or restore a backup from before the upgrade",
  });
  writeFileSync(join(dataDir, `before-upgrade-from-${SCHEMA_VERSION + 1}.tar`), "");
  expect((await hint()).hint).toBe("run the newer version, or restore a backup from before the upgrade");
  writeFileSync(join(dataDir, `before-upgrade-from-${SCHEMA_VERSION}.tar`), "");
  expect((await hint()).hint).toBe(
    `run the newer version, or go back to the state before the upgrade: gatehouse restore ${dataDir}/before-upgrade-from-${SCHEMA_VERSION}.tar --data NEW --keys ${dataDir}`,
  );
});
