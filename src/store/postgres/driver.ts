/** The only file that knows the driver, the package `pg`. */
import type { Writable } from "node:stream";
import pg from "pg";
import { type SqlValue, StoreUnavailable } from "../db.ts";
import { EngineError, isConnectionLost, isStatementUnknown } from "./errors.ts";
import type { Timeouts } from "./limits.ts";
import type { Presence } from "./presence.ts";
import { type Parameter, parserOf } from "./values.ts";

export type Row = Readonly<Record<string, SqlValue>>;

/** The answer to a statement. */
export interface Answer {
  readonly rows: Row[];
  /** The number of rows that it returned or changed. */
  readonly count: number;
  /** The server's name for what it did, such as COMMIT. */
  readonly command: string;
}

/** A connection for one user at a time. Statements are sent at once, and answered in order. */
export interface Connection {
  /**
   * @throws EngineError if the server refuses the statement, or the connection is lost
   * @throws RangeError if a number of the result is not exact
   */
  send(sql: string, params?: readonly Parameter[]): Promise<Answer>;
  /** Gives the connection back. `isUsable`: false if its state is unknown, so it is closed. */
  release(isUsable: boolean): void;
}

/** How statements are sent. Shared by all connections of a store. */
export interface Mode {
  /**
   * Whether a pooler such as PgBouncer is between, which gives each transaction another session. Then statements are
   * sent without names, and each transaction has its own settings. Becomes true when the server says that it does not
   * know a prepared statement.
   */
  isPooled: boolean;
}

export interface PoolOptions {
  readonly url: string;
  readonly mode: Mode;
  readonly timeouts: Timeouts;
  /** The most connections. */
  readonly max: number;
  /** Knows whether the server can be reached. Without it, every statement finds out by itself. */
  readonly presence?: Pick<Presence, "require" | "doubt">;
}

interface Wait {
  readonly since: number;
}

/** Unused connections are closed after this time. */
const IDLE_MS = 60_000;
const KEEP_ALIVE_MS = 5_000;
/** What the driver's pool says then. */
const NONE_FREE = "timeout exceeded when trying to connect";
/** The most that may wait for a connection. */
const MOST_WAITING = 20_000;

/** Connections to the database, established when they are needed. */
export class Pool {
  readonly #pool: pg.Pool;
  readonly #mode: Mode;
  readonly #presence: PoolOptions["presence"];
  readonly #clients = new Set<pg.Client>();
  /** What waits for a connection or for the answer to a statement, the oldest first. */
  readonly #waits = new Set<Wait>();
  #used = 0;
  #isClosed = false;
  #onUnused: () => void = () => {};

  constructor({ url, mode, timeouts, max, presence }: PoolOptions) {
    this.#mode = mode;
    this.#presence = presence;
    const clients = this.#clients;
    const config = configOf(url, timeouts);
    const Client = class extends pg.Client {
      constructor() {
        // The pool hands its own options on, whose limit is for waiting for a free connection as well.
        super(config);
        // Whatever it reports is also the result of the statements that it was to answer.
        this.on("error", ignore);
        clients.add(this);
        this.on("end", () => clients.delete(this));
      }
    };
    this.#pool = new pg.Pool({
      Client,
      max,
      connectionTimeoutMillis: timeouts.queueMs,
      idleTimeoutMillis: IDLE_MS,
      onConnect: (client) => (mode.isPooled ? undefined : client.query(sessionSettings(timeouts))),
    });
    this.#pool.on("error", ignore);
  }

  /**
   * Takes a connection, which MUST be released.
   * @throws EngineError if there is none
   * @throws StoreUnavailable if the pool is closed, too many wait, none became free in time, or the server has been away
   *   for a while
   */
  async take(): Promise<Connection> {
    if (this.#isClosed) throw new StoreUnavailable("the store is closed");
    if (this.#pool.waitingCount >= MOST_WAITING) {
      throw new StoreUnavailable(`${MOST_WAITING} statements are waiting already`);
    }
    this.#used += 1;
    try {
      const present = this.#presence?.require();
      if (present) await present;
      return this.#connectionOf(await this.#waitFor(this.#pool.connect()));
    } catch (error) {
      this.#leave();
      if (error instanceof StoreUnavailable) throw error;
      if (error instanceof Error && error.message === NONE_FREE) {
        throw new StoreUnavailable("all connections to the database were in use for too long", error);
      }
      throw this.#noted(engineErrorOf(error));
    }
  }

  /** When the oldest unanswered statement was sent, by `performance.now`. Infinite if none waits. */
  get waitingSince(): number {
    const [oldest] = this.#waits;
    return oldest?.since ?? Number.POSITIVE_INFINITY;
  }

  /** Ends all connections at once, because the server does not answer. What waits for it fails. */
  abandon(): void {
    for (const client of [...this.#clients]) client.connection.stream.destroy();
  }

  /** Accepts nothing more, and resolves once all connections are released and closed. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#used > 0) {
      await new Promise<void>((resolve) => {
        this.#onUnused = resolve;
      });
    }
    await this.#pool.end();
  }

  #leave(): void {
    this.#used -= 1;
    if (this.#used === 0) this.#onUnused();
  }

  #connectionOf(client: pg.PoolClient): Connection {
    const mode = this.#mode;
    return {
      send: async (sql, params) => {
        try {
          return await this.#waitFor(send(client, mode, sql, params));
        } catch (error) {
          throw this.#noted(error);
        }
      },
      release: (isUsable) => {
        client.release(!isUsable);
        this.#leave();
      },
    };
  }

  async #waitFor<Result>(work: Promise<Result>): Promise<Result> {
    const wait: Wait = { since: performance.now() };
    this.#waits.add(wait);
    try {
      return await work;
    } finally {
      this.#waits.delete(wait);
    }
  }

  #noted(error: unknown): unknown {
    if (isConnectionLost(error)) this.#presence?.doubt();
    return error;
  }
}

/** A connection that no pool keeps. */
export interface SingleConnection extends Pick<Connection, "send"> {
  /** Ends it in order, once all statements are answered. */
  close(): Promise<void>;
  /** Ends it at once, even if the server does not answer. */
  destroy(): void;
}

/**
 * Opens one connection, for an upgrade or for notifications.
 *
 * @param onNotification called with the channel and the payload
 * @throws EngineError
 */
export async function connect(
  url: string,
  timeouts: Timeouts,
  onNotification: (channel: string, payload: string) => void = ignore,
): Promise<SingleConnection> {
  const client = await established(url, timeouts);
  client.on("notification", ({ channel, payload }) => onNotification(channel, payload ?? ""));
  const mode: Mode = { isPooled: true };
  return {
    send: (sql, params) => send(client, mode, sql, params),
    close: () => client.end(),
    destroy: () => void client.connection.stream.destroy(),
  };
}

async function established(url: string, timeouts: Timeouts): Promise<pg.Client> {
  try {
    const client = new pg.Client(configOf(url, timeouts));
    client.on("error", ignore);
    await client.connect();
    return client;
  } catch (error) {
    throw engineErrorOf(error);
  }
}

function configOf(url: string, timeouts: Timeouts): pg.ClientConfig {
  return {
    connectionString: url,
    application_name: "gatehouse",
    connectionTimeoutMillis: timeouts.connectMs,
    query_timeout: timeouts.answerMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    pipeline: true,
    types: { getTypeParser: parserOf },
  };
}

/** The settings of a session, as one statement. A pooler's sessions are shared, so there each transaction has its own. */
function sessionSettings(timeouts: Timeouts): string {
  return settingsSql(timeouts, "false");
}

export function transactionSettings(timeouts: Timeouts): string {
  return settingsSql(timeouts, "true");
}

function settingsSql({ statementMs, lockMs, idleMs }: Timeouts, isLocal: "true" | "false"): string {
  const settings = Object.entries({
    statement_timeout: statementMs,
    lock_timeout: lockMs,
    idle_in_transaction_session_timeout: idleMs,
  });
  return `SELECT ${settings.map(([name, ms]) => `set_config('${name}', '${ms}', ${isLocal})`).join(", ")}`;
}

async function send(
  client: pg.ClientBase,
  mode: Mode,
  sql: string,
  params: readonly Parameter[] = [],
): Promise<Answer> {
  const values = [...params];
  try {
    if (client instanceof pg.Client) gatherWrites(client.connection.stream);
    const name = mode.isPooled || CONTROL.test(sql) ? undefined : nameOf(sql);
    const { rows, rowCount, command } = await client.query<Row>(
      name === undefined ? { text: sql, values } : { name, text: sql, values },
    );
    return { rows, count: rowCount ?? 0, command };
  } catch (error) {
    const known = engineErrorOf(error);
    if (isStatementUnknown(known)) mode.isPooled = true;
    throw known;
  }
}

const gathering = new WeakSet<Writable>();

/**
 * Sends all statements of this turn of the event loop at once. Written one by one, they were as many system calls, a
 * third of a server's CPU, and each woke up the database's process.
 */
function gatherWrites(stream: Writable): void {
  if (gathering.has(stream)) return;
  gathering.add(stream);
  stream.cork();
  process.nextTick(() => {
    gathering.delete(stream);
    stream.uncork();
  });
}

/** Statements that PostgreSQL does not need to prepare, and several statements in one text. */
const CONTROL = /^(BEGIN|COMMIT|ROLLBACK)\b|;/;
/** Statements whose number of parameters varies would fill the server's memory. */
const MOST_NAMES = 1_000;
const names = new Map<string, string>();

/**
 * The name of a prepared statement. It depends only on the text: behind a pooler, sessions meet statements that other
 * nodes have prepared, which MUST NOT be other statements under the same name.
 */
function nameOf(sql: string): string | undefined {
  const known = names.get(sql);
  if (known !== undefined || names.size >= MOST_NAMES) return known;
  const name = new Bun.CryptoHasher("sha256").update(sql).digest("hex").slice(0, 32);
  names.set(sql, name);
  return name;
}

/** Every error of the driver without SQLSTATE means that the connection failed, or that there is none. */
function engineErrorOf(error: unknown): unknown {
  if (error instanceof RangeError || error instanceof EngineError) return error;
  if (!(error instanceof Error)) return new EngineError(String(error), null);
  const code = error instanceof pg.DatabaseError ? (error.code ?? null) : null;
  return new EngineError(error.message || errnoOf(error), code);
}

/** Node gives no message if several addresses of a host were tried. */
function errnoOf(error: Error): string {
  return "code" in error ? String(error.code) : error.name;
}

function ignore(): void {}
