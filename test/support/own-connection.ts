/**
 * The connection with which a gateway in this process writes. What is changed with it is no other program's commit: a test makes
 * with it what a start would otherwise refuse (a trigger that makes the store refuse what a full disk would), or what a person
 * writes past SQLite while the gateway runs. What another program commits is made with a connection of the test's own instead.
 */
import type { Database } from "bun:sqlite";
import { realpathSync } from "node:fs";
import { databasePath } from "../../src/store/directory.ts";
import { Connection } from "../../src/store/sqlite/connection.ts";

const writers = new Map<string, Database>();

// Each store calls this once, on its writer alone, when its schema is made.
const neverWait = Connection.prototype.neverWait;
Connection.prototype.neverWait = function (this: Connection) {
  writers.set(realpathSync(this.database.filename), this.database);
  neverWait.call(this);
};

/** Of the gateway that has this data directory open. Nobody but the gateway closes it. */
export function ownConnection(dataDir: string): Database {
  return ownConnectionOf(databasePath(dataDir));
}

/** Of the store that has this file open. */
export function ownConnectionOf(path: string): Database {
  const writer = writers.get(realpathSync(path));
  if (!writer) throw new Error(`no store of this process has opened ${path}`);
  return writer;
}
