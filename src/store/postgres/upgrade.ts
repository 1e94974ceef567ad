import { OperatorError } from "../../base/errors.ts";
import { CommitMarks } from "./commit-marks.ts";
import { connect, type SingleConnection } from "./driver.ts";
import { EngineError } from "./errors.ts";
import { TIMEOUTS, type Timeouts } from "./limits.ts";
import { migrate, type SchemaChange, versionOf } from "./migrate.ts";
import { MIGRATIONS } from "./migrations/index.ts";

/** The version of the schema that this program uses. */
export const NEWEST_VERSION = MIGRATIONS.length;
/** The oldest supported version, as the server reports it. */
const OLDEST_VERSION = 150_000;
/** A statement of an upgrade may take this long, or wait this long for another node's upgrade. */
const UPGRADE_MS = 70_000;

/**
 * Checks the server, and upgrades the schema if that is needed.
 * @param url a direct URL
 * @throws OperatorError if the database cannot be reached, is too old, or belongs to something else
 */
export async function upgrade(url: string, timeouts: Timeouts = TIMEOUTS): Promise<SchemaChange> {
  const work = async (connection: SingleConnection) => {
    const change = await migrate(connection);
    await CommitMarks.deleteOld(connection);
    return change;
  };
  return withDatabase(url, work, timeouts);
}

/**
 * The version of a database's schema; 0 if it is empty. Changes nothing.
 * @param url a direct URL
 * @throws OperatorError like `upgrade`
 */
export async function schemaVersion(url: string, timeouts: Timeouts = TIMEOUTS): Promise<number> {
  return withDatabase(url, (connection) => versionOf(connection, MIGRATIONS), timeouts);
}

/**
 * Calls `work` with a connection of its own, whose statements may take a minute.
 * @throws OperatorError if the database cannot be used
 */
export async function withDatabase<T>(
  url: string,
  work: (connection: SingleConnection) => Promise<T>,
  timeouts: Timeouts = TIMEOUTS,
): Promise<T> {
  const name = databaseName(url);
  let connection: SingleConnection | null = null;
  try {
    connection = await connect(url, { ...timeouts, answerMs: UPGRADE_MS });
    await requireVersion(connection);
    const result = await work(connection);
    await connection.close();
    return result;
  } catch (error) {
    // A server that does not answer would not end the connection either.
    connection?.destroy();
    if (!(error instanceof EngineError)) throw error;
    throw new OperatorError(`the database ${name} cannot be used: ${error.message}`, hintFor(error));
  }
}

/** For messages: without the password. @throws OperatorError */
export function databaseName(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : null;
  if (!parsed || !/^postgres(ql)?:$/.test(parsed.protocol) || parsed.pathname.length < 2) {
    throw new OperatorError(
      "the store is not a URL of PostgreSQL",
      "use the form postgres://user:password@host:port/database",
    );
  }
  return `${parsed.pathname.slice(1)} on ${parsed.host}`;
}

async function requireVersion(connection: SingleConnection): Promise<void> {
  const { rows } = await connection.send(
    "SELECT current_setting('server_version_num')::int AS number, current_setting('server_version') AS version, current_setting('server_encoding') AS encoding",
  );
  const { number, version, encoding } = rows[0] ?? {};
  if (typeof number !== "number" || number < OLDEST_VERSION) {
    throw new OperatorError(
      `the server is PostgreSQL ${version}, which is too old`,
      "upgrade it to PostgreSQL 15 or later",
    );
  }
  if (encoding !== "UTF8") {
    throw new OperatorError(
      `the database's encoding is ${encoding}`,
      "create a database with ENCODING 'UTF8' TEMPLATE template0",
    );
  }
}

function hintFor({ code }: EngineError): string {
  if (code === null || code.startsWith("57P"))
    return "check that the server runs, and that this machine can reach it";
  if (code.startsWith("28")) return "check the user and the password in the store's URL";
  if (code === "3D000") return "create the database, or correct its name in the store's URL";
  if (code === "42501") return "let this user own the database, or grant it CREATE on the schema";
  return "correct the database or the store's URL, then try again";
}
