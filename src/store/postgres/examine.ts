import { versionOf } from "./migrate.ts";
import { MIGRATIONS } from "./migrations/index.ts";
import { withDatabase } from "./upgrade.ts";

/** What an operator should know about the database that servers share. */
export interface DatabaseFacts {
  /** Of the server, such as `15.18`. */
  readonly version: string;
  /** 0 if the database is empty. */
  readonly schema: number;
  /** How far the server's clock is ahead of this machine's, in milliseconds. */
  readonly clockAheadMs: number;
  readonly maxConnections: number;
  /** Whether the settings that keep what was committed are on: `fsync`, `full_page_writes`, `synchronous_commit`. */
  readonly unsafe: readonly string[];
  readonly isSuperuser: boolean;
}

const FACTS = `SELECT current_setting('server_version') AS version, current_setting('max_connections')::int AS max,
  (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now,
  (SELECT array_to_string(array_agg(name ORDER BY name), ',') FROM pg_settings
   WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit') AND setting IN ('off')) AS unsafe,
  (SELECT rolsuper::int FROM pg_roles WHERE rolname = current_user) AS superuser`;

/**
 * Reads them. Changes nothing.
 * @param url a direct URL
 * @throws OperatorError if the database cannot be used
 */
export function examine(url: string, now: () => number): Promise<DatabaseFacts> {
  return withDatabase(url, async (connection) => {
    const before = now();
    const { rows } = await connection.send(FACTS);
    const after = now();
    const [row = {}] = rows;
    return {
      version: String(row.version),
      schema: await versionOf(connection, MIGRATIONS),
      clockAheadMs: Math.round(Number(row.now) - (before + after) / 2),
      maxConnections: Number(row.max),
      unsafe: row.unsafe ? String(row.unsafe).split(",") : [],
      isSuperuser: Number(row.superuser) === 1,
    };
  });
}
