import { existsSync } from "node:fs";
import { systemClock, timestamp } from "../../base/clock.ts";
import { VERSION } from "../../base/version.ts";
import type { Config } from "../../config/config.ts";
import { databasePath } from "../../store/directory.ts";
import {
  DatabaseUnreadable,
  NEWEST_SCHEMA,
  openReadOnly,
  type ReadOnlyDatabase,
} from "../../store/sqlite/read-only.ts";
import { type KeyFit, ledgerKeyFit, secretKeyFit } from "../keys-fit.ts";
import { type Finding, fail, ok, warn } from "./finding.ts";

/** Clocks of a machine's own may differ by that much after a restart. */
const CLOCK_MS = 60_000;
const VERIFY = "run `gatehouse ledger verify`, and restore a backup if it finds damage";

/** The database in the data directory, and the keys that belong to it. Changes nothing, and may run beside a server. */
export function checkDatabase({ dataDir, masterKey }: Pick<Config, "dataDir" | "masterKey">): Finding[] {
  const path = databasePath(dataDir);
  if (!existsSync(path)) return [ok("database", "there is none yet")];
  let database: ReadOnlyDatabase | undefined;
  try {
    database = openReadOnly(path);
    if (!database.isOurs) {
      return [
        fail("database", `${path} is not a Gatehouse database`, "choose another directory with --data"),
      ];
    }
    const { schemaVersion } = database;
    const found = [schema(schemaVersion)];
    if (schemaVersion > NEWEST_SCHEMA) return found;
    found.push(...clockFindings(database));
    found.push(key("ledger.key", ledgerKeyFit(dataDir, database)));
    const name = masterKey === undefined ? "secrets.key" : "master_key";
    found.push(key(name, secretKeyFit(dataDir, masterKey, database)));
    return found;
  } catch (error) {
    if (!(error instanceof DatabaseUnreadable)) throw error;
    return [fail("database", `${path} cannot be read: ${error.message}`, VERIFY)];
  } finally {
    database?.close();
  }
}

function schema(version: number): Finding {
  if (version === NEWEST_SCHEMA)
    return ok("database", `its schema is that of this version, ${NEWEST_SCHEMA}`);
  const theirs = `its schema is ${version}; that of this version, ${VERSION}, is ${NEWEST_SCHEMA}`;
  if (version > NEWEST_SCHEMA) {
    return fail("database", theirs, "run the newer version, or restore a backup from before the upgrade");
  }
  return warn(
    "database",
    theirs,
    "make a backup: the next start upgrades it, and older versions then refuse it",
  );
}

function clockFindings(database: ReadOnlyDatabase): Finding[] {
  const last = database
    .all<{ id: number }>("SELECT id FROM workspaces")
    .map(({ id }) => lastEntryAt(database, id))
    .filter((at) => at !== null);
  if (last.some(Number.isNaN))
    return [fail("database", "the newest entry of a ledger cannot be read", VERIFY)];
  return [clock(last.length === 0 ? null : Math.max(...last), systemClock.now())];
}

/** Milliseconds since the Unix epoch; null if there is no entry, NaN if it cannot be read. */
function lastEntryAt(database: ReadOnlyDatabase, workspaceId: number): number | null {
  const row = database.get<{ bytes: string }>(
    "SELECT bytes FROM ledger WHERE workspace_id = $1 ORDER BY seq DESC LIMIT 1",
    [workspaceId],
  );
  if (!row) return null;
  try {
    return Date.parse((JSON.parse(row.bytes) as { ts: string }).ts);
  } catch {
    return Number.NaN;
  }
}

export function clock(last: number | null, now: number): Finding {
  if (last === null || last <= now + CLOCK_MS) return ok("clock", timestamp(now));
  return fail(
    "clock",
    `this machine's clock says ${timestamp(now)}, which is before the newest entry of a ledger, ${timestamp(last)}`,
    "set the clock, for example with an NTP service: entries would be dated in the past, and tokens live longer",
  );
}

function key(name: string, { fit, error }: KeyFit): Finding {
  switch (fit) {
    case "fits":
      return ok("keys", `${name} belongs to the database`);
    case "none":
      return ok("keys", `the database was never used with a key like ${name}`);
    case "missing":
      return fail(
        "keys",
        `${name} is missing`,
        `put the copy that you have kept into the data directory, with mode 0600`,
      );
    case "differs":
      return fail("keys", `${name} does not belong to this database`, "put the key that was beside it back");
    case "unusable":
      return fail(
        "keys",
        error?.message ?? `${name} cannot be used`,
        error?.hint ?? "put the copy that you have kept there",
      );
  }
}
