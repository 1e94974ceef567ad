import type { SqlValue } from "../db.ts";

/** Reading and using a row takes as long as this many bytes of text: about 2 µs. */
const PER_ROW = 1024;

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
