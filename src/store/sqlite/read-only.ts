import { constants, Database } from "bun:sqlite";
import { existsSync, realpathSync, statSync } from "node:fs";
import type { SqlValue } from "../db.ts";
import { Connection, sqliteCode } from "./connection.ts";
import { APPLICATION_ID, SCHEMA_VERSION } from "./migrate.ts";
import { NODE_HEAD } from "./migrations/016-node-head.ts";
import { versionOf } from "./migrations/index.ts";
import { SCHEMA, type SchemaObject } from "./schema.ts";

/** A database file opened without changing it or leaving anything next to it. */
export interface ReadOnlyDatabase {
  /** Whether the file's header identifies it as a Gatehouse database. */
  readonly isOurs: boolean;
  /** The number of migrations applied to it. */
  readonly schemaVersion: number;
  schema(): SchemaObject[];
  /** Reads row by row, in constant memory. @throws DatabaseUnreadable */
  rows<Row>(sql: string, params?: readonly SqlValue[]): Generator<Row, void>;
  /** Reads all rows at once: for small results. @throws DatabaseUnreadable */
  all<Row>(sql: string, params?: readonly SqlValue[]): Row[];
  /** @throws DatabaseUnreadable */
  get<Row>(sql: string, params?: readonly SqlValue[]): Row | undefined;
  /**
   * The problems that SQLite finds in the pages of a table and its indexes, limited in number. @throws
   * DatabaseUnreadable
   */
  integrityProblems(table: string): string[];
  /** Whether others have written to the files since they were opened, or are about to write. */
  hasChanged(): boolean;
  /**
   * Whether everything is read from one snapshot, even while others write. Without a running server, snapshots are
   * not possible: the data is then valid only if `hasChanged` is false.
   */
  readonly isShared: boolean;
  close(): void;
}

/** The newest schema that this program knows. */
export const NEWEST_SCHEMA = SCHEMA_VERSION;
/** The first schema whose commits sign the heads of all ledgers together. */
export const FIRST_WITH_NODE_HEAD = versionOf(NODE_HEAD);

/** The file cannot be read: it is damaged, this user may not read it, or another process has locked it. */
export class DatabaseUnreadable extends Error {
  override readonly name = "DatabaseUnreadable";
  /** Whether the content is not a valid SQLite database. */
  readonly isDamaged: boolean;

  constructor(error: Error) {
    const code = sqliteCode(error);
    super(`${error.message} (${code})`, { cause: error });
    this.isDamaged = DAMAGED.test(code);
  }
}

const DAMAGED = /^SQLITE_(CORRUPT|NOTADB|FORMAT)/;
/** A starting server locks the file for a moment. */
const BUSY_TIMEOUT_MS = 5_000;
/**
 * The size of a log's header. A log of only this size is left by a process that dies before writing the first page.
 * SQLite cannot read alongside such a log without permission to write the index: it assumes that a writer is just
 * resetting the log, and gives up with SQLITE_PROTOCOL after half a minute (`walBeginShmUnreliable` in its wal.c,
 * 3.54.1).
 */
const LOG_HEADER_BYTES = 32;
const MOST_PROBLEMS = 20;
const UNLOCKED_VFS = process.platform === "win32" ? "win32-none" : "unix-none";
const IDENTIFIER = /^[a-z_]+$/;

/**
 * Opens a database file for verification. Nothing is written, not even the files that SQLite normally creates beside
 * a database it reads, so a directory on a read-only disk can be read and every file stays as it was:
 *
 * - Without a log, or with an empty one, the file is read as immutable (`immutable`). Either no process has it open,
 *   or a change will be noticed.
 * - With a log and its index, the database is in use, or its process died. The index is read but not written
 *   (`readonly_shm`). Later writes of a running server are not seen.
 * - With only a log, such as in a copy, the index is built in memory (`locking_mode=EXCLUSIVE`, which takes no lock
 *   here).
 *
 * @throws DatabaseUnreadable
 */
export function openReadOnly(name: string): ReadOnlyDatabase {
  // The log is next to the file itself, not next to a link to it.
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
      // Not one of the connection's cached statements: several callers may iterate over the same rows at once.
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
      if (!IDENTIFIER.test(table)) throw new TypeError(`${table} is not a table name`);
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

/** Opens a connection and begins a transaction, so everything is read from the same moment. */
function begin(uri: string, keepsIndexInMemory: boolean): Connection {
  const database = new Database(uri, constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI);
  try {
    database.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    if (keepsIndexInMemory) database.exec("PRAGMA locking_mode = EXCLUSIVE");
    database.exec("PRAGMA query_only = ON");
    // Nothing in the schema of an untrusted file is executed.
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
  /** Changes whenever the file is written. Empty if there is none. */
  readonly file: string;
  readonly log: string;
  /** Also 0 if there is none. */
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

/** SQLite's URI of a file. The characters `?`, `#` and `%` have a meaning in it. */
function uriOf(path: string): string {
  const parts = path.replaceAll("\\", "/").split("/");
  return `file:${parts.map(encodeURIComponent).join("/")}`;
}

/** A bug (`SQLITE_ERROR`) is passed on unchanged. */
function reading<Result>(read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    const code = sqliteCode(error);
    if (!(error instanceof Error) || code === "" || code === "SQLITE_ERROR") throw error;
    throw new DatabaseUnreadable(error);
  }
}
