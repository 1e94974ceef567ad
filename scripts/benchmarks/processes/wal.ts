import { readFileSync } from "node:fs";
import { join } from "node:path";

const HEADER = 32;
const FRAME_HEADER = 24;

export interface WalCount {
  readonly commits: number;
  /** Written pages. */
  readonly pages: number;
  /** Changes whenever SQLite begins the log again. */
  readonly round: string;
}

/** Counts what SQLite's log contains since it was last begun ("WAL File Format" in SQLite's documentation). */
export function countWal(dataDir: string): WalCount {
  const bytes = readFileSync(join(dataDir, "gatehouse.db-wal"));
  const pageSize = bytes.readUInt32BE(8);
  const salts = bytes.subarray(16, 24);
  let commits = 0;
  let pages = 0;
  for (let at = HEADER; at + FRAME_HEADER + pageSize <= bytes.length; at += FRAME_HEADER + pageSize) {
    // Frames of an earlier round follow those of this one.
    if (!salts.equals(bytes.subarray(at + 8, at + 16))) break;
    pages += 1;
    if (bytes.readUInt32BE(at + 4) > 0) commits += 1;
  }
  return { commits, pages, round: salts.toString("hex") };
}
