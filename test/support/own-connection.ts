/**
 * The connection with which a gateway in this process writes. Its changes do not count as another program's commit.
 * Tests use it for changes that a start would otherwise refuse (a trigger that makes the store fail like a full
 * disk), or for what a person writes bypassing SQLite while the gateway runs. For another program's commits, tests
 * use a connection of their own.
 */
import type { Database } from "bun:sqlite";
import { realpathSync } from "node:fs";
import { databasePath } from "../../src/store/directory.ts";
import { Connection } from "../../src/store/sqlite/connection.ts";

const writers = new Map<string, Database>();
const awaited = new Map<string, (writer: Database) => void>();

// Each store calls this once, only on its writer, when its schema is created.
const neverWait = Connection.prototype.neverWait;
Connection.prototype.neverWait = function (this: Connection) {
  const path = realpathSync(this.database.filename);
  writers.set(path, this.database);
  const work = awaited.get(path);
  awaited.delete(path);
  // The settings applied next would remove temporary objects.
  if (work) queueMicrotask(() => work(this.database));
  neverWait.call(this);
};

/** Makes the next store of this process that opens the file begin with this. */
export function atOpen(path: string, work: (writer: Database) => void): void {
  awaited.set(realpathSync(path), work);
}

/** For the gateway that has this data directory open. Only the gateway closes it. */
export function ownConnection(dataDir: string): Database {
  return ownConnectionOf(databasePath(dataDir));
}

/** For the store that has this file open. */
export function ownConnectionOf(path: string): Database {
  const writer = writers.get(realpathSync(path));
  if (!writer) throw new Error(`no store of this process has opened ${path}`);
  return writer;
}
