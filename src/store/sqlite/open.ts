import { existsSync } from "node:fs";
import { OperatorError } from "../../base/errors.ts";
import { type Db, type Disturbance, type Sql, type SqlValue, StoreUnavailable } from "../db.ts";
import { RowSeals } from "../seals/seals.ts";
import { type Connection, openReader, openWriter, sqliteCode } from "./connection.ts";
import { GroupCommit, isEngineError } from "./group.ts";
import { migrate } from "./migrate.ts";
import { openSeals, type SealOptions } from "./open-seals.ts";
import { requireOwnSchema } from "./schema.ts";
import { loadVectorExtension, type VectorExtension } from "./vec.ts";
import { StoreWatch } from "./watch.ts";

export interface SqliteOptions {
  /** Folder that sqlite-vec is written to and loaded from; without it, it is not loaded. */
  readonly libraries?: string;
  /** What rows are sealed with. Without it, none is sealed, and none is believed. */
  readonly seals?: SealOptions;
}

export interface SqliteDb extends Db {
  readonly vectors: VectorExtension;
}

/**
 * Opens (and creates) the database file, brings its schema up to date and answers the port. One process at a time: the
 * caller holds the data directory's lock.
 *
 * @throws OperatorError when the file is of a newer program, is no Gatehouse database, or cannot be written.
 */
export function openSqlite(path: string, options: SqliteOptions = {}): SqliteDb {
  const wasLeftOpen = hasLog(path);
  const { writer, reader, seals } = openConnections(path, options.seals);
  const vectors: VectorExtension =
    options.libraries === undefined
      ? { path: null, problem: "sqlite-vec was not asked for" }
      : loadVectorExtension([writer.database, reader.database], options.libraries);
  const watch = new StoreWatch(path, writer);
  const group = new GroupCommit(writer, () => watch.look(), seals);
  const reads: Pick<Sql, "all" | "get"> = {
    async all<Row>(sql: string, params?: readonly SqlValue[]) {
      return read(() => reader.all<Row>(sql, params));
    },
    async get<Row>(sql: string, params?: readonly SqlValue[]) {
      return read(() => reader.get<Row>(sql, params));
    },
  };
  return {
    ...reads,
    seals,
    vectors,
    wasLeftOpen,
    forget: () => forget(group, watch),
    rewrite: (most) => rewrite(group, watch, most),
    run: (sql, params) => group.submit((tx) => tx.run(sql, params), { single: true }),
    tx: (work, options = {}) => group.submit(work, options),
    beforeCommit: (work) => group.beforeCommit(work),
    async disturbances() {
      const moved = watch.lookAtFiles();
      group.refuse(watch.displaced);
      return [...moved, ...(await commitsOfOthers(group, watch))];
    },
    async close() {
      await group.end();
      reader.close();
      writeBack(writer);
      writer.close();
      watch.close();
    },
  };
}

/** SQLite takes the log's file away when the last connection closes in order. */
function hasLog(path: string): boolean {
  return existsSync(`${path}-wal`);
}

/** None where the store cannot be read now: they are seen at a later look. */
async function commitsOfOthers(group: GroupCommit, watch: StoreWatch): Promise<readonly Disturbance[]> {
  try {
    return await group.between(() => watch.takeCommits());
  } catch (error) {
    if (error instanceof StoreUnavailable) return [];
    throw error;
  }
}

/** Leaves one file behind, where it can: on a full disk the log stays beside it, and the next start reads both. */
function writeBack(writer: Connection): void {
  try {
    writer.database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  } catch (error) {
    if (!isEngineError(error)) throw error;
  }
}

const TRIES = 100;
const WAIT_MS = 20;

/**
 * Deleted rows are overwritten in the database's file (`secure_delete`), but the log still holds them as they were: it is
 * written back and emptied.
 */
function forget(group: GroupCommit, watch: StoreWatch): Promise<boolean> {
  return untilOthersLetGo(
    group,
    watch,
    (connection) => connection.get<{ busy: number }>("PRAGMA wal_checkpoint(TRUNCATE)")?.busy === 0,
  );
}

async function rewrite(group: GroupCommit, watch: StoreWatch, most: number): Promise<boolean> {
  if ((await group.between(sizeOf)) > most) return false;
  const isAnew = await untilOthersLetGo(group, watch, vacuum);
  return isAnew && (await forget(group, watch));
}

/** Others hold the file for moments: a reader in the middle of a query, a worker's connection that opens or closes. */
async function untilOthersLetGo(
  group: GroupCommit,
  watch: StoreWatch,
  work: (connection: Connection) => boolean,
): Promise<boolean> {
  for (let attempt = 0; attempt < TRIES; attempt++) {
    if (await group.between((connection) => watch.own(() => work(connection)))) return true;
    await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
  }
  return false;
}

function sizeOf(connection: Connection): number {
  const pages = connection.get<{ page_count: number }>("PRAGMA page_count")?.page_count ?? 0;
  return pages * (connection.get<{ page_size: number }>("PRAGMA page_size")?.page_size ?? 0);
}

/** @returns false where somebody else has the file */
function vacuum(connection: Connection): boolean {
  try {
    connection.run("VACUUM");
    return true;
  } catch (error) {
    if (sqliteCode(error).startsWith("SQLITE_BUSY")) return false;
    throw error;
  }
}

/** What the engine says when the file cannot be read now. A refusal to write (`READONLY`) is a fault of the program here. */
const UNREADABLE = /^SQLITE_(BUSY|LOCKED|IOERR|CORRUPT|NOTADB|CANTOPEN|NOMEM|PROTOCOL)/;

/** @throws StoreUnavailable where the engine cannot read, as the writer does where it cannot write. */
function read<Result>(query: () => Result): Result {
  try {
    return query();
  } catch (error) {
    const code = sqliteCode(error);
    if (UNREADABLE.test(code)) throw new StoreUnavailable(`the store cannot be read (${code})`, error);
    throw error;
  }
}

function openConnections(
  path: string,
  options: SealOptions | undefined,
): { readonly writer: Connection; readonly reader: Connection; readonly seals: RowSeals } {
  let writer: Connection | undefined;
  try {
    writer = openWriter(path);
    requireOwnSchema(writer.database);
    migrate(writer.database);
    const seals = options ? openSeals(writer, options) : new RowSeals(null);
    writer.neverWait();
    const reader = openReader(path);
    for (const { database } of [writer, reader]) keepTogether(database);
    return { writer, reader, seals };
  } catch (error) {
    writer?.close();
    throw forOperator(path, error);
  }
}

/**
 * Else a transaction that changes much writes what was there before, and a query that sorts much what it sorts, into files
 * of the system's folder for such: texts would leave the data directory, and no deletion would reach them there.
 */
function keepTogether(database: Connection["database"]): void {
  database.exec("PRAGMA temp_store = MEMORY");
}

/** What the operator can mend is said without a stack. A fault of the program (`SQLITE_ERROR`) stays as it is. */
function forOperator(path: string, error: unknown): unknown {
  const code = sqliteCode(error);
  if (code === "" || code === "SQLITE_ERROR" || !(error instanceof Error)) return error;
  if (code === "SQLITE_NOTADB") {
    return new OperatorError(
      `the database file ${path} is not a Gatehouse database`,
      "name another data directory with --data",
    );
  }
  return new OperatorError(
    `the database file ${path} cannot be opened: ${error.message} (${code})`,
    hintFor(code),
  );
}

function hintFor(code: string): string {
  if (code === "SQLITE_FULL") return "make room on the disk, then try again";
  if (code.startsWith("SQLITE_BUSY")) return "another program has it open: wait for it, or end it";
  if (code.startsWith("SQLITE_CORRUPT")) return "put a backup of the data directory back";
  return "see that this user may write it, that the disk has room, and that it is a file";
}
