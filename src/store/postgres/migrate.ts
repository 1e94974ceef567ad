import { OperatorError } from "../../base/errors.ts";
import type { SingleConnection } from "./driver.ts";
import { isConflict, isConnectionLost, isLockTimeout } from "./errors.ts";
import { MIGRATIONS } from "./migrations/index.ts";
import { type RepeatOptions, repeat } from "./repeat.ts";

export interface Migration {
  /** What the migration adds to the schema, for people. */
  readonly name: string;
  readonly sql: string;
  /**
   * Programs that do not know this migration can use the schema after it, so they may also start while an upgrade rolls: it
   * adds only tables, columns that an INSERT may leave out, and indexes that are not unique. Default: they are refused.
   */
  readonly isAdditive?: boolean;
}

const ADD = "INSERT INTO gatehouse_schema (version, name, usable_from) VALUES ($1, $2, $3)";
const NEWEST = "SELECT version, usable_from FROM gatehouse_schema ORDER BY version DESC LIMIT 1";

/** The versions of a schema before and after an upgrade, which are the same if there was none. */
export interface SchemaChange {
  readonly from: number;
  readonly to: number;
}

/** "GATEHOUS" in ASCII, as a number: the advisory lock of upgrades. */
const LOCK = "5134477706721711443";
/** Another node's upgrade may take this long. A node that is frozen during its own loses it. */
const WAIT_SQL = "SET LOCAL lock_timeout = '60s'; SET LOCAL idle_in_transaction_session_timeout = '3s'";
/**
 * Servers that are running lock a row of this table first. So those that write wait here, and hold nothing that the upgrade
 * needs. Otherwise each table that it changes could end in a deadlock.
 */
const PAUSE = "SET LOCAL lock_timeout = '500ms'; LOCK TABLE ledger_tails IN ACCESS EXCLUSIVE MODE";
/**
 * Whoever reads a table for long, such as a backup, keeps the upgrade waiting, and the upgrade would keep the servers waiting. So it
 * gives up after half a second, lets them go on as long, and tries again, as it does after conflicts.
 */
const ATTEMPTS: Omit<RepeatOptions, "mayRepeat"> = { limitMs: 60_000, mostAttempts: 60 };
const VERSION_TABLE = `CREATE TABLE IF NOT EXISTS gatehouse_schema (
  version BIGINT NOT NULL PRIMARY KEY,
  name TEXT COLLATE "C" NOT NULL,
  usable_from BIGINT NOT NULL,
  applied_at TIMESTAMPTZ NOT NULL DEFAULT now()
)`;

/**
 * Upgrades a database to this program's version, in one transaction. Nodes that start at the same time wait for each
 * other. A database of a newer version that this program can use stays as it is.
 *
 * @throws OperatorError if this program must not use the database
 */
export async function migrate(
  connection: Pick<SingleConnection, "send">,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<SchemaChange> {
  const before = await stateOf(connection, migrations);
  if (before.version >= migrations.length) return { from: before.version, to: before.version };
  try {
    return await repeat({ ...ATTEMPTS, mayRepeat: isInTheWay }, () => apply(connection, migrations));
  } catch (error) {
    if (!isInTheWay(error)) throw error;
    throw new OperatorError(
      "the database's schema cannot be upgraded while something reads or changes its tables for long",
      "wait for backups and other long transactions to end, then try again",
    );
  }
}

function isInTheWay(error: unknown): boolean {
  return isConflict(error) || isLockTimeout(error);
}

async function apply(
  connection: Pick<SingleConnection, "send">,
  migrations: readonly Migration[],
): Promise<SchemaChange> {
  await connection.send("BEGIN");
  try {
    await lock(connection);
    let { version, usableFrom } = await stateOf(connection, migrations);
    const from = version;
    if (version > 0) await connection.send(PAUSE);
    await connection.send(VERSION_TABLE);
    for (const { name, sql, isAdditive = false } of migrations.slice(version)) {
      await connection.send(sql);
      version += 1;
      if (!isAdditive) usableFrom = version;
      await connection.send(ADD, [String(version), name, String(usableFrom)]);
    }
    await connection.send("COMMIT");
    return { from, to: version };
  } catch (error) {
    // If the connection is lost, the server rolls back by itself.
    if (!isConnectionLost(error)) await connection.send("ROLLBACK");
    throw error;
  }
}

/** Held until the transaction ends. */
async function lock(connection: Pick<SingleConnection, "send">): Promise<void> {
  await connection.send(WAIT_SQL);
  try {
    await connection.send(`SELECT pg_advisory_xact_lock(${LOCK})`);
  } catch (error) {
    if (!isLockTimeout(error)) throw error;
    throw new OperatorError(
      "another node has been upgrading the database for more than a minute",
      "wait for that node, or stop it, then start again",
    );
  }
}

/** The schema of a database. */
interface SchemaState {
  /** The number of migrations that were applied. 0 if it is empty. */
  readonly version: number;
  /** The oldest version whose programs can use it. */
  readonly usableFrom: number;
}

/** The version of the database, which may be a newer one. 0 if it is empty. @throws OperatorError if this program must not use it */
export async function versionOf(
  connection: Pick<SingleConnection, "send">,
  migrations: readonly Migration[],
): Promise<number> {
  return (await stateOf(connection, migrations)).version;
}

/** @throws OperatorError if this program must not use it */
async function stateOf(
  connection: Pick<SingleConnection, "send">,
  migrations: readonly Migration[],
): Promise<SchemaState> {
  const found = await connection.send(
    "SELECT to_regclass('gatehouse_schema') IS NOT NULL AS known, EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = current_schema()) AS used",
  );
  if (found.rows[0]?.known !== 1) {
    if (found.rows[0]?.used !== 1) return { version: 0, usableFrom: 0 };
    throw new OperatorError(
      "the database has tables, and is not a Gatehouse database",
      "create an empty database and name it in the store's URL",
    );
  }
  const { rows } = await connection.send(NEWEST);
  const [version, usableFrom] = [Number(rows[0]?.version ?? 0), Number(rows[0]?.usable_from ?? 0)];
  if (usableFrom <= migrations.length) return { version, usableFrom };
  throw new OperatorError(
    `the database was upgraded by a newer Gatehouse (schema ${version}, this program supports up to ${migrations.length})`,
    "run the newer version, or restore a backup from before the upgrade",
  );
}
