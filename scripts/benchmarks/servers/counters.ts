import { readFileSync } from "node:fs";

/** Counters that a server keeps in a file, mapped into memory. Each is an integer of four bytes. */
export const COUNTERS = {
  /** The environment variable with the file's path. */
  variable: "BENCH_COUNTERS",
  bytes: 8,
  statements: 0,
  control: 1,
} as const;

export interface CounterValues {
  /** Executed statements, apart from `control`. */
  readonly statements: number;
  /** Executed statements that begin and end transactions or set SQLite up. */
  readonly control: number;
}

export function readCounters(file: string): CounterValues {
  const bytes = readFileSync(file);
  return { statements: bytes.readInt32LE(0), control: bytes.readInt32LE(4) };
}
