import { readFileSync } from "node:fs";
import { join } from "node:path";
import { StoreUnavailable } from "../../src/store/db.ts";
import { type Connection, openReader, openWriter } from "../../src/store/sqlite/connection.ts";
import { GroupCommit } from "../../src/store/sqlite/group.ts";
import { tempDir } from "../support/process.ts";

/** A small table and a group commit for it, without the gateway's schema. */
export interface Bench {
  readonly path: string;
  readonly writer: Connection;
  readonly group: GroupCommit;
  /** Keys and values as seen by a separate connection. */
  rows(): { k: number; v: string }[];
  /** How many commits the log contains. Each cost a sync. */
  commits(): number;
  /** The time that the thread has used, as far as the group commit knows. */
  readonly time: { cpuMs: number };
  close(): void;
}

export function openBench(): Bench {
  const directory = tempDir();
  const path = join(directory.path, "bench.db");
  const writer = openWriter(path);
  writer.database.exec("CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT NOT NULL) STRICT");
  // Restart the log and never write it back automatically, so that every commit can be counted.
  writer.database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  writer.database.exec("PRAGMA wal_autocheckpoint = 0");
  writer.neverWait();
  const reader = openReader(path);
  const time = { cpuMs: 0 };
  return {
    path,
    writer,
    group: new GroupCommit(writer, { cpuMs: () => time.cpuMs }),
    time,
    rows: () => reader.all("SELECT k, v FROM t ORDER BY k"),
    commits: () => countCommits(readFileSync(`${path}-wal`)),
    close() {
      reader.close();
      writer.close();
      directory.remove();
    },
  };
}

const WAL_HEADER = 32;
const FRAME_HEADER = 24;

/**
 * Counts the frames that end a transaction: the database size in bytes 4 to 7 of their header is not zero
 * (sqlite.org/walformat.html).
 */
export function countCommits(wal: Buffer): number {
  if (wal.length < WAL_HEADER) return 0;
  const frame = FRAME_HEADER + wal.readUInt32BE(8);
  let commits = 0;
  for (let at = WAL_HEADER; at + frame <= wal.length; at += frame) {
    const present = wal.compare(wal, 16, 24, at + 8, at + 16) === 0;
    if (present && wal.readUInt32BE(at + 4) > 0) commits += 1;
  }
  return commits;
}

/** The result of each promise: its value, or its error's name and message. */
export async function outcomes(jobs: readonly Promise<unknown>[]): Promise<unknown[]> {
  const settled = await Promise.allSettled(jobs);
  return settled.map((each) => (each.status === "fulfilled" ? each.value : describeError(each.reason)));
}

function describeError(error: unknown): string {
  if (error instanceof StoreUnavailable) return "StoreUnavailable";
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
