import { OperatorError } from "../../base/errors.ts";
import type { Db, Sql, Tx } from "../db.ts";
import { RowSeals } from "../seals/seals.ts";
import { CommitMarks } from "./commit-marks.ts";
import { connect, type Mode, Pool, type SingleConnection } from "./driver.ts";
import { EngineError } from "./errors.ts";
import type { GroupParts } from "./group.ts";
import { Lanes } from "./lanes.ts";
import { CONNECTIONS, type ConnectionCounts, TIMEOUTS, type Timeouts } from "./limits.ts";
import { migrate } from "./migrate.ts";
import { readsInTurn, urgentReads } from "./reads.ts";

export interface PostgresOptions {
  /** `postgres://user:password@host:port/database`, through PgBouncer or directly. */
  readonly url: string;
  /** A direct URL of the same database. If it is given, `url` leads to a pooler such as PgBouncer. */
  readonly directUrl?: string;
  /** Without them, rows are not sealed and none is trusted. */
  readonly seals?: RowSeals;
  readonly timeouts?: Partial<Timeouts>;
  readonly connections?: Partial<ConnectionCounts>;
}

/** The oldest supported version, as the server reports it. */
const OLDEST_VERSION = 150_000;
/** A statement of an upgrade may take this long, or wait this long for another node's upgrade. */
const UPGRADE_MS = 70_000;

/**
 * Opens the database, and upgrades its schema if that is needed. Any number of nodes may use it at the same time.
 *
 * @throws OperatorError if the database cannot be reached, is too old, or belongs to something else
 */
export async function openPostgres(options: PostgresOptions): Promise<Db> {
  const timeouts = { ...TIMEOUTS, ...options.timeouts };
  const counts = { ...CONNECTIONS, ...options.connections };
  const seals = options.seals ?? new RowSeals(null);
  await prepare(options.directUrl ?? options.url, timeouts);
  const mode: Mode = { isPooled: options.directUrl !== undefined };
  const pool = (max: number) => new Pool({ url: options.url, mode, timeouts, max });
  const pools = { writers: pool(counts.writers), readers: pool(counts.readers), urgent: pool(counts.urgent) };
  let last: ((tx: Tx) => Promise<void>) | null = null;
  let first: ((tx: Tx) => Promise<void> | undefined) | null = null;
  const parts: Omit<GroupParts, "pool"> = {
    mode,
    timeouts,
    seals,
    marks: new CommitMarks(),
    beforeCommit: () => last,
    afterLock: () => first,
  };
  const lanes = new Lanes({ ...parts, pool: pools.writers });
  const urgentLanes = new Lanes({ ...parts, pool: pools.urgent });
  const runOn =
    (target: Lanes): Sql["run"] =>
    (sql, params) =>
      target.submit(null, (tx) => tx.run(sql, params), {});
  return {
    ...readsInTurn(pools.readers, timeouts.retryMs),
    seals,
    run: runOn(lanes),
    urgent: { ...urgentReads(pools.urgent, timeouts.retryMs), seals, run: runOn(urgentLanes) },
    tx: (workspaces, work, txOptions = {}) => lanes.submit(workspaces, work, txOptions),
    afterLock(work) {
      if (first) throw new Error("a function already runs after each lock");
      first = work;
    },
    beforeCommit(work) {
      if (last) throw new Error("a function already runs before each commit");
      last = work;
    },
    async close() {
      await Promise.all([lanes.end(), urgentLanes.end()]);
      await Promise.all(Object.values(pools).map((each) => each.close()));
    },
  };
}

/** Checks the server, and upgrades the schema. */
async function prepare(url: string, timeouts: Timeouts): Promise<void> {
  const name = nameOf(url);
  let connection: SingleConnection | null = null;
  try {
    connection = await connect(url, { ...timeouts, answerMs: UPGRADE_MS });
    await requireVersion(connection);
    await migrate(connection);
    await CommitMarks.deleteOld(connection);
    await connection.close();
  } catch (error) {
    // A server that does not answer would not end the connection either.
    connection?.destroy();
    if (!(error instanceof EngineError)) throw error;
    throw new OperatorError(`the database ${name} cannot be used: ${error.message}`, hintFor(error));
  }
}

/** For messages: without the password. @throws OperatorError */
function nameOf(url: string): string {
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
