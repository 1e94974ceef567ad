import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { OperatorError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { databasePath } from "../directory.ts";
import { syncDirectory } from "../key-file.ts";
import { DatabaseUnreadable, NEWEST_SCHEMA, openReadOnly } from "../sqlite/read-only.ts";
import { instanceOf } from "./instance.ts";
import { makeBackup } from "./make.ts";

export interface UpgradeParts {
  readonly dataDir: string;
  /** Where the backup is kept. Null: none is made. */
  readonly upgradeBackup: string | null;
  readonly now: Date;
  readonly log: Log;
}

/** What the names of a server's backups begin with. Several servers may use one folder, but not one data directory. */
function prefixOf(dataDir: string, folder: string): string {
  return folder === dataDir ? "before-upgrade" : `before-upgrade-${instanceOf(databasePath(dataDir))}`;
}

const SCHEMA = /^-from-(\d+)\.tar$/;

/** The schema of a backup of this server, by its name. Undefined for any other file. */
function schemaIn(name: string, prefix: string): number | undefined {
  const [, schema] = name.startsWith(prefix) ? (SCHEMA.exec(name.slice(prefix.length)) ?? []) : [];
  return schema === undefined ? undefined : Number(schema);
}

/**
 * Makes a backup of a database that this start is about to upgrade, without its keys, which stay beside it. It replaces the
 * one of the upgrade before.
 * @throws OperatorError if the database belongs to a newer version, or the backup cannot be written
 */
export async function backUpBeforeUpgrade({ dataDir, upgradeBackup, now, log }: UpgradeParts): Promise<void> {
  const schema = schemaOf(databasePath(dataDir));
  if (schema === null || schema === NEWEST_SCHEMA) return;
  if (schema > NEWEST_SCHEMA) throw newer(schema, dataDir, upgradeBackup);
  if (upgradeBackup === null) return;
  const prefix = prefixOf(dataDir, upgradeBackup);
  const name = `${prefix}-from-${schema}.tar`;
  const path = join(upgradeBackup, name);
  try {
    mkdirSync(upgradeBackup, { recursive: true, mode: 0o700 });
    await write(path, { dataDir, now });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new OperatorError(
      `the backup before the upgrade cannot be written to ${path} (${why}), so nothing was upgraded`,
      "free some space; or set upgrade_backup to a folder on another disk, or to off once you have made a backup yourself",
    );
  }
  for (const other of readdirSync(upgradeBackup)) {
    if (schemaIn(other, prefix) !== undefined && other !== name) rmSync(join(upgradeBackup, other));
  }
  log.info("a backup was made, because the database is upgraded now", {
    backup: path,
    schema,
    to: NEWEST_SCHEMA,
  });
}

async function write(path: string, { dataDir, now }: Pick<UpgradeParts, "dataDir" | "now">): Promise<void> {
  const beside = `${path}.partial`;
  // Left by a start that was killed.
  rmSync(beside, { force: true });
  const backup = await makeBackup({
    ...{ dataDir, withSecrets: false, workFolder: dirname(path), now },
    ...{ signal: new AbortController().signal, progress() {} },
  });
  try {
    const file = await open(beside, "wx", 0o600);
    try {
      for await (const bytes of backup.bytes) await file.appendFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    renameSync(beside, path);
    syncDirectory(dirname(path));
  } catch (error) {
    rmSync(beside, { force: true });
    throw error;
  } finally {
    backup.close();
  }
}

/**
 * Null if there is no database, an empty one, or one that is damaged, as its opening then reports.
 * @throws DatabaseUnreadable if it cannot be read now: nothing may be upgraded without a backup
 */
function schemaOf(path: string): number | null {
  if (!existsSync(path)) return null;
  try {
    const database = openReadOnly(path);
    try {
      return database.isOurs && database.schemaVersion > 0 ? database.schemaVersion : null;
    } finally {
      database.close();
    }
  } catch (error) {
    if (error instanceof DatabaseUnreadable && error.isDamaged) return null;
    throw error;
  }
}

/** The way back is the backup of the newest upgrade from a schema that this program knows, if there is one. */
function newer(schema: number, dataDir: string, folder: string | null): OperatorError {
  const names = folder !== null && existsSync(folder) ? readdirSync(folder) : [];
  const prefix = folder === null ? "" : prefixOf(dataDir, folder);
  const backup = names.find((name) => (schemaIn(name, prefix) ?? Number.POSITIVE_INFINITY) <= NEWEST_SCHEMA);
  const restore =
    backup === undefined
      ? "or restore a backup from before the upgrade"
      : `or go back to the state before the upgrade: gatehouse restore ${join(folder ?? "", backup)} --data NEW --keys ${dataDir}`;
  return new OperatorError(
    `the data directory was written by a newer Gatehouse (schema ${schema}, this program supports up to ${NEWEST_SCHEMA})`,
    `run the newer version, ${restore}`,
  );
}
