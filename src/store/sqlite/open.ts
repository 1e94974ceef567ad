import { existsSync } from "node:fs";
import { OperatorError } from "../../base/errors.ts";
import { type Db, type Sql, StoreUnavailable } from "../db.ts";
import type { Disturbance, FileStore } from "../file-store.ts";
import { RowSeals } from "../seals/seals.ts";
import { type Connection, openReader, openWriter, sqliteCode } from "./connection.ts";
import { isEngineError } from "./engine-errors.ts";
import { GroupCommit } from "./group.ts";
import { migrate } from "./migrate.ts";
import { openSeals, type SealOptions } from "./open-seals.ts";
import { readsInTurn, urgentReads } from "./reads.ts";
import { requireOwnSchema } from "./schema.ts";
import { SyncThread } from "./sync-thread.ts";
import { loadVectorExtension, type VectorExtension } from "./vec.ts";
import { dataVersionOf, StoreWatch, type WatchedFiles } from "./watch.ts";
import { WatchedFile } from "./watched-file.ts";

export interface SqliteOptions {
  /** The folder that sqlite-vec is written to and loaded from. Without it, sqlite-vec is not loaded. */
  readonly libraries?: string;
  /**
   * The program of a thread that syncs the log (`sync-worker.ts`). Without it, each commit blocks the event loop until
   * it is on disk.
   */
  readonly syncWorker?: URL;
  /** The key for sealing rows. Without it, rows are not sealed and none is trusted. */
  readonly seals?: SealOptions;
  /** Runs the work of each transaction twice and undoes the first run, as PostgreSQL may have to. Only for tests. */
  readonly rerunWork?: boolean;
}

export interface SqliteDb extends Db, FileStore {
  readonly vectors: VectorExtension;
}

/**
 * Opens (or creates) the database file and upgrades its schema. Only one process at a time: the caller holds the data
 * directory's lock.
 *
 * @throws OperatorError if the file belongs to a newer version, is not a Gatehouse database or cannot be written
 */
export function openSqlite(path: string, options: SqliteOptions = {}): SqliteDb {
  const wasLeftOpen = hasLog(path);
  const { writer, reader, seals, files, since } = openConnections(path, options.seals);
  const vectors: VectorExtension =
    options.libraries === undefined
      ? { path: null, problem: "sqlite-vec was not requested" }
      : loadVectorExtension([writer.database, reader.database], options.libraries);
  const syncThread = options.syncWorker ? new SyncThread(options.syncWorker) : null;
  if (syncThread) writer.deferSyncs();
  const watch = new StoreWatch(files, writer, { since, syncThread });
  const group = new GroupCommit(writer, { guard: watch, seals, rerunWork: options.rerunWork ?? false });
  const run: Sql["run"] = (sql, params) => group.submit((tx) => tx.run(sql, params), { single: true });
  return {
    ...readsInTurn({ reader, syncing: group.syncing }),
    seals,
    urgent: { ...urgentReads({ reader, syncing: group.syncing }), seals, run },
    vectors,
    wasLeftOpen,
    get mustReopen() {
      return watch.mustReopen;
    },
    forget: () => forget(group, watch),
    rewrite: (most) => rewrite(group, watch, most),
    run,
    tx: (ledgers, work, options = {}) => group.submit(work, options, ledgers),
    beforeCommit: (work) => group.beforeCommit(work),
    afterLock() {},
    async disturbances() {
      const moved = watch.takeMoves();
      return [...moved, ...(await commitsOfOthers(group, watch))];
    },
    async close() {
      await group.end();
      syncThread?.close();
      reader.close();
      watch.takeMoves();
      if (watch.mustNotWrite) writer.abandon();
      else writeBack(writer);
      writer.close();
      watch.close();
    },
  };
}

/** SQLite removes the log when the last connection closes cleanly. */
function hasLog(path: string): boolean {
  return existsSync(`${path}-wal`);
}

/** Empty if the store cannot be read now: a later check reports the commits. */
async function commitsOfOthers(group: GroupCommit, watch: StoreWatch): Promise<readonly Disturbance[]> {
  try {
    return await group.between(() => watch.takeCommits());
  } catch (error) {
    if (error instanceof StoreUnavailable) return [];
    throw error;
  }
}

/** Leaves a single file behind if possible. On a full disk the log remains, and the next start reads both. */
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
 * `secure_delete` overwrites deleted rows in the database file, but the log still contains them. It is written back
 * and emptied.
 */
function forget(group: GroupCommit, watch: StoreWatch): Promise<boolean> {
  return untilOthersLetGo(
    group,
    watch,
    0,
    (connection) => connection.get<{ busy: number }>("PRAGMA wal_checkpoint(TRUNCATE)")?.busy === 0,
  );
}

async function rewrite(group: GroupCommit, watch: StoreWatch, most: number): Promise<boolean> {
  if ((await group.between(sizeOf)) > most) return false;
  const isAnew = await untilOthersLetGo(group, watch, 1, vacuum);
  return isAnew && (await forget(group, watch));
}

/** Others hold the file briefly: a reader during a query, or a worker's connection while it opens or closes. */
async function untilOthersLetGo(
  group: GroupCommit,
  watch: StoreWatch,
  commits: number,
  work: (connection: Connection) => boolean,
): Promise<boolean> {
  for (let attempt = 0; attempt < TRIES; attempt++) {
    if (await group.between((connection) => watch.own(commits, () => work(connection)))) return true;
    await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
  }
  return false;
}

function sizeOf(connection: Connection): number {
  const pages = connection.get<{ page_count: number }>("PRAGMA page_count")?.page_count ?? 0;
  return pages * (connection.get<{ page_size: number }>("PRAGMA page_size")?.page_size ?? 0);
}

/** @returns false if another process has the file */
function vacuum(connection: Connection): boolean {
  try {
    connection.run("VACUUM");
    return true;
  } catch (error) {
    if (sqliteCode(error).startsWith("SQLITE_BUSY")) return false;
    throw error;
  }
}

function schemaVersionOf(connection: Connection): number {
  return connection.get<{ user_version: number }>("PRAGMA user_version")?.user_version ?? 0;
}

/**
 * Requires that the schema is this program's own, and upgrades it, under one write lock: nobody can add a trigger
 * between the check and a migration, whose statements would fire it.
 *
 * @returns the data version when the lock was taken, which the upgrade does not change. Everything is compared after
 *   that point: a commit made after a comparison must not pass for compared data
 */
function upgrade(writer: Connection): number {
  const upgradeLocked = writer.database.transaction(() => {
    const since = dataVersionOf(writer);
    // The connection read the schema before it had the lock. If somebody has since removed a trigger without increasing
    // the file's schema version, the connection would still run it, and no check of the file would find it.
    writer.database.exec("PRAGMA writable_schema = RESET");
    requireOwnSchema(writer.database);
    migrate(writer.database);
    return since;
  });
  return upgradeLocked.immediate();
}

function openConnections(
  path: string,
  options: SealOptions | undefined,
): {
  readonly writer: Connection;
  readonly reader: Connection;
  readonly seals: RowSeals;
  readonly files: WatchedFiles;
  readonly since: number;
} {
  const watched: WatchedFile[] = [];
  const connections: Connection[] = [];
  try {
    const database = watch(path, "database");
    const writer = connect(openWriter);
    const log = watch(`${path}-wal`, "log");
    const index = watch(`${path}-shm`, "index");
    requireOpen();
    const since = upgrade(writer);
    const seals = options ? openSeals(writer, options) : new RowSeals(null);
    writer.neverWait();
    const reader = connect(openReader);
    requireOpen();
    for (const { database } of connections) keepTogether(database);
    return { writer, reader, seals, files: { database, log, index }, since };
  } catch (error) {
    for (const connection of connections) connection.close();
    for (const file of watched) file.close();
    throw forOperator(path, error);
  }

  function watch(file: string, name: WatchedFile["name"]): WatchedFile {
    const opened = new WatchedFile(file, name);
    watched.push(opened);
    return opened;
  }

  function connect(open: (path: string) => Connection): Connection {
    const connection = open(path);
    connections.push(connection);
    // SQLite opens the log only when it reads.
    schemaVersionOf(connection);
    return connection;
  }

  function requireOpen(): void {
    // Connections of one process share the descriptor of the index.
    for (const file of watched) file.requireOpenIn(file.name === "index" ? 1 : connections.length);
  }
}

/**
 * Keeps temporary data in memory. Otherwise large transactions and sorts write into files in the system's temporary
 * folder: text would leave the data directory, and no deletion would reach it.
 */
function keepTogether(database: Connection["database"]): void {
  database.exec("PRAGMA temp_store = MEMORY");
}

/** Errors that the operator can fix are shown without a stack. A bug (`SQLITE_ERROR`) is passed on unchanged. */
function forOperator(path: string, error: unknown): unknown {
  const code = sqliteCode(error);
  if (code === "" || code === "SQLITE_ERROR" || !(error instanceof Error)) return error;
  if (code === "SQLITE_NOTADB") {
    return new OperatorError(
      `the database file ${path} is not a Gatehouse database`,
      "choose another data directory with --data",
    );
  }
  return new OperatorError(
    `the database file ${path} cannot be opened: ${error.message} (${code})`,
    hintFor(code),
  );
}

function hintFor(code: string): string {
  if (code === "SQLITE_FULL") return "free some disk space, then try again";
  if (code.startsWith("SQLITE_BUSY"))
    return "another program has locked it: wait for that program, or stop it";
  if (code.startsWith("SQLITE_CORRUPT")) return "restore the data directory from a backup";
  return "check that it is a file, that this user can write to it, and that the disk has free space";
}
