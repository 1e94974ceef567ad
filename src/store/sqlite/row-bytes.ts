import type { SqlValue } from "../db.ts";

/** The time that a row takes, compared with that of a byte of text. */
const PER_ROW = 64;

/** The size of texts and binary values, which is what their time depends on. */
export function bytesOfValues(values: readonly SqlValue[]): number {
  let bytes = 0;
  for (const value of values) {
    if (typeof value === "string" || value instanceof Uint8Array) bytes += value.length;
  }
  return bytes;
}

/** @param row a row as SQLite returns it; undefined: there is none */
export function bytesOfRow(row: unknown): number {
  return PER_ROW + bytesOfValues(Object.values(row ?? {}));
}

export function bytesOfRows(rows: readonly unknown[]): number {
  let bytes = 0;
  for (const row of rows) bytes += bytesOfRow(row);
  return bytes;
}
