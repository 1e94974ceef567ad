import { OperatorError } from "../../base/errors.ts";
import type { SingleConnection } from "./driver.ts";
import { EngineError, isConnectionLost } from "./errors.ts";
import { MIGRATIONS } from "./migrations/index.ts";

export interface Migration {
  /** What the migration adds to the schema, for people. */
  readonly name: string;
  readonly sql: string;
}

/** The versions of a schema before and after an upgrade, which are the same if there was none. */
export interface SchemaChange {
  readonly from: number;
  readonly to: number;
}

/** "GATEHOUS" in ASCII, as a number: the advisory lock of upgrades. */
const LOCK = "5134477706721711443";
/** Another node's upgrade may take this long. */
const WAIT_SQL = "SET LOCAL lock_timeout = '60s'";
const LOCK_TIMEOUT = "55P03";
const VERSION_TABLE = `CREATE TABLE IF NOT EXISTS gatehouse_schema (
  version BIGINT NOT NULL PRIMARY KEY,
  name TEXT COLLATE "C" NOT NULL,
  applied_at TIMESTAMPTZ NOT NULL DEFAULT now()
)`;

/**
 * Upgrades a database to this program's version, in one transaction. Nodes that start at the same time wait for each
 * other.
 *
 * @throws OperatorError if the database belongs to a newer version or to another program
 */
export async function migrate(
  connection: Pick<SingleConnection, "send">,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<SchemaChange> {
  const to = migrations.length;
  if ((await versionOf(connection, migrations)) === to) return { from: to, to };
  await connection.send("BEGIN");
  try {
    await lock(connection);
    const version = await versionOf(connection, migrations);
    await connection.send(VERSION_TABLE);
    for (const [index, { name, sql }] of migrations.entries()) {
      if (index < version) continue;
      await connection.send(sql);
      await connection.send("INSERT INTO gatehouse_schema (version, name) VALUES ($1, $2)", [
        String(index + 1),
        name,
      ]);
    }
    await connection.send("COMMIT");
    return { from: version, to };
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
    if (!(error instanceof EngineError && error.code === LOCK_TIMEOUT)) throw error;
    throw new OperatorError(
      "another node has been upgrading the database for more than a minute",
      "wait for that node, or stop it, then start again",
    );
  }
}

/** The version of the database. 0 if it is empty. @throws OperatorError if this program must not use it */
export async function versionOf(
  connection: Pick<SingleConnection, "send">,
  migrations: readonly Migration[],
): Promise<number> {
  const found = await connection.send(
    "SELECT to_regclass('gatehouse_schema') IS NOT NULL AS known, EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = current_schema()) AS used",
  );
  if (found.rows[0]?.known !== 1) {
    if (found.rows[0]?.used !== 1) return 0;
    throw new OperatorError(
      "the database has tables, and is not a Gatehouse database",
      "create an empty database and name it in the store's URL",
    );
  }
  const { rows } = await connection.send("SELECT COALESCE(MAX(version), 0) AS version FROM gatehouse_schema");
  const version = Number(rows[0]?.version);
  if (version <= migrations.length) return version;
  throw new OperatorError(
    `the database was upgraded by a newer Gatehouse (schema ${version}, this program supports up to ${migrations.length})`,
    "run the newer version, or restore a backup from before the upgrade",
  );
}
