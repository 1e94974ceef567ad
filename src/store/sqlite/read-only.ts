import { constants, Database } from "bun:sqlite";
import { existsSync, realpathSync, statSync } from "node:fs";
import type { SqlValue } from "../db.ts";
import { Connection, sqliteCode } from "./connection.ts";
import { APPLICATION_ID, SCHEMA_VERSION } from "./migrate.ts";
import { NODE_HEAD } from "./migrations/016-node-head.ts";
import { versionOf } from "./migrations/index.ts";
import { SCHEMA, type SchemaObject } from "./schema.ts";

/** A database file as somebody reads it who must not change it, nor leave anything beside it. */
export interface ReadOnlyDatabase {
  /** Whether SQLite's own header names Gatehouse. */
  readonly isOurs: boolean;
  /** The number of migrations that made it. */
  readonly schemaVersion: number;
  schema(): SchemaObject[];
  /** One after another, in constant memory. @throws DatabaseUnreadable */
  rows<Row>(sql: string, params?: readonly SqlValue[]): Generator<Row, void>;
  /** All at once: for few. @throws DatabaseUnreadable */
  all<Row>(sql: string, params?: readonly SqlValue[]): Row[];
  /** @throws DatabaseUnreadable */
  get<Row>(sql: string, params?: readonly SqlValue[]): Row | undefined;
  /** What SQLite finds wrong with the pages of a table and of its indexes, some at most. @throws DatabaseUnreadable */
  integrityProblems(table: string): string[];
  /** Whether others wrote to the files since it was opened, or are about to. */
  hasChanged(): boolean;
  /**
   * Whether all was read as it was at one moment, whoever writes meanwhile. Where no server was running there is nobody to
   * ask for that: then what was read is good if nothing `hasChanged`.
   */
  readonly isShared: boolean;
  close(): void;
}

/** The newest schema that this program knows. */
export const NEWEST_SCHEMA = SCHEMA_VERSION;
/** The first schema whose commits sign the heads of all ledgers together. */
export const FIRST_WITH_NODE_HEAD = versionOf(NODE_HEAD);

/** The file cannot be read: it is damaged, or this user may not, or somebody keeps others out. */
export class DatabaseUnreadable extends Error {
  override readonly name = "DatabaseUnreadable";
  /** Its content is not what SQLite writes. */
  readonly isDamaged: boolean;

  constructor(error: Error) {
    const code = sqliteCode(error);
    super(`${error.message} (${code})`, { cause: error });
    this.isDamaged = DAMAGED.test(code);
  }
}

const DAMAGED = /^SQLITE_(CORRUPT|NOTADB|FORMAT)/;
/** A server that starts has the file for itself for a moment. */
const BUSY_TIMEOUT_MS = 5_000;
/**
 * A log that is its header alone is what a process leaves that dies before the first page of it. SQLite never gets to read
 * beside such a log where it may not write the index: it takes the log for one that somebody is just beginning anew, and
 * gives up with SQLITE_PROTOCOL after half a minute (`walBeginShmUnreliable` in its wal.c, 3.54.1).
 */
const LOG_HEADER_BYTES = 32;
const MOST_PROBLEMS = 20;
const UNLOCKED_VFS = process.platform === "win32" ? "win32-none" : "unix-none";
const IDENTIFIER = /^[a-z_]+$/;

/**
 * Opens a database file to be verified. Nothing is written, not even the files that SQLite else puts beside one that it
 * reads, so that a directory on a read-only disk can be read and every file stays as it was:
 *
 * - Without a log beside it, or with one that holds nothing, it is read as a file that does not change (`immutable`): nobody
 *   has it open, or whoever has will be seen to change it.
 * - With a log and its index it is in use, or its process died: the index is read but not written (`readonly_shm`). Where
 *   there is a server, what it writes from now on is not seen.
 * - With a log alone, as somebody copied it, the index is made in memory (`locking_mode=EXCLUSIVE`, which takes no lock
 *   here).
 *
 * @throws DatabaseUnreadable
 */
export function openReadOnly(name: string): ReadOnlyDatabase {
  // The log lies beside the file itself, not beside a link to it.
  const path = existsSync(name) ? realpathSync(name) : name;
  const before = stateOf(path);
  const isShared = before.log !== "" && before.hasIndex && before.logBytes !== LOG_HEADER_BYTES;
  const isAlone = !isShared && before.logBytes > LOG_HEADER_BYTES;
  const parameter = isShared ? "readonly_shm=1" : isAlone ? `vfs=${UNLOCKED_VFS}` : "immutable=1";
  const connection = reading(() => begin(`${uriOf(path)}?${parameter}`, isAlone));
  try {
    return reading(() => readOnly(path, connection, before, isShared));
  } catch (error) {
    connection.close();
    throw error;
  }
}

function readOnly(
  path: string,
  connection: Connection,
  before: FileState,
  isShared: boolean,
): ReadOnlyDatabase {
  return {
    isOurs: pragma(connection, "application_id") === APPLICATION_ID,
    schemaVersion: pragma(connection, "user_version"),
    isShared,
    schema: () => reading(() => connection.all<SchemaObject>(SCHEMA)),
    *rows<Row>(sql: string, params: readonly SqlValue[] = []) {
      // Not one of the connection's kept statements: several may go through the same rows at once.
      const statement = reading(() =>
        connection.database.prepare<Row, SqlValue[]>(sql.replace(/\$(\d+)/g, "?$1")),
      );
      try {
        const rows = reading(() => statement.iterate(...params));
        for (;;) {
          const next = reading(() => rows.next());
          if (next.done) return;
          yield next.value;
        }
      } finally {
        statement.finalize();
      }
    },
    all: <Row>(sql: string, params?: readonly SqlValue[]) => reading(() => connection.all<Row>(sql, params)),
    get: <Row>(sql: string, params?: readonly SqlValue[]) => reading(() => connection.get<Row>(sql, params)),
    integrityProblems(table) {
      if (!IDENTIFIER.test(table)) throw new TypeError(`${table} is no name of a table`);
      const rows = reading(() =>
        connection.all<{ integrity_check: string }>(`PRAGMA integrity_check(${table})`),
      );
      return rows
        .map(({ integrity_check: problem }) => problem)
        .filter((problem) => problem !== "ok")
        .slice(0, MOST_PROBLEMS);
    },
    hasChanged() {
      const now = stateOf(path);
      return now.file !== before.file || now.log !== before.log || now.hasIndex !== before.hasIndex;
    },
    close: () => connection.close(),
  };
}

/** A connection whose one transaction has begun: all that is read is of the same moment. */
function begin(uri: string, keepsIndexInMemory: boolean): Connection {
  const database = new Database(uri, constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI);
  try {
    database.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    if (keepsIndexInMemory) database.exec("PRAGMA locking_mode = EXCLUSIVE");
    database.exec("PRAGMA query_only = ON");
    // What the schema of a stranger's file says is not run.
    database.exec("PRAGMA trusted_schema = OFF");
    database.exec("PRAGMA cell_size_check = ON");
    database.exec("PRAGMA cache_size = -16384");
    database.exec("PRAGMA temp_store = MEMORY");
    database.exec("BEGIN");
    database.query("SELECT COUNT(*) FROM sqlite_schema").get();
    return new Connection(database);
  } catch (error) {
    database.close();
    throw error;
  }
}

function pragma(connection: Connection, name: "application_id" | "user_version"): number {
  return connection.get<Record<string, number>>(`PRAGMA ${name}`)?.[name] ?? 0;
}

interface FileState {
  /** What changes when it is written to; empty where there is none. */
  readonly file: string;
  readonly log: string;
  /** 0 where there is none as well. */
  readonly logBytes: number;
  readonly hasIndex: boolean;
}

function stateOf(path: string): FileState {
  const log = stampOf(`${path}-wal`);
  const [logBytes] = log.split(" ", 1);
  return {
    file: stampOf(path),
    log,
    logBytes: Number(logBytes),
    hasIndex: stampOf(`${path}-shm`) !== "",
  };
}

function stampOf(path: string): string {
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stats ? `${stats.size} ${stats.mtimeNs} ${stats.ino}` : "";
}

/** SQLite's URI of a file. In it `?`, `#` and `%` have a meaning. */
function uriOf(path: string): string {
  const parts = path.replaceAll("\\", "/").split("/");
  return `file:${parts.map(encodeURIComponent).join("/")}`;
}

/** A fault of the program (`SQLITE_ERROR`) stays as it is. */
function reading<Result>(read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    const code = sqliteCode(error);
    if (!(error instanceof Error) || code === "" || code === "SQLITE_ERROR") throw error;
    throw new DatabaseUnreadable(error);
  }
}
