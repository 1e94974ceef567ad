import type { SqlValue } from "../db.ts";
import { type RowSeals, rowName, sealedColumnNames } from "./seals.ts";
import { SEALED_NAMES, SEALED_TABLES, type SealedName } from "./tables.ts";

/** A row whose seal does not match. */
export interface UnsealedRow {
  readonly table: SealedName;
  /** The values of its key columns, joined by a slash. */
  readonly name: string;
  /** Null if the row belongs to no workspace. */
  readonly workspaceId: number | null;
  /** Its key and sealed columns, as stored. */
  readonly values: Readonly<Record<string, SqlValue>>;
}

/** The result of checking all sealed rows of a database. */
export interface SealedRowsCheck {
  readonly intact: number;
  /** The first of them, at most `MOST_LISTED`. */
  readonly broken: readonly UnsealedRow[];
  readonly brokenCount: number;
}

/** Reads rows one after another. */
export type ReadRows = (sql: string) => Iterable<Readonly<Record<string, SqlValue>>>;

/** Maximum number of rows that are kept in memory to be listed. */
export const MOST_LISTED = 10_000;

/** Checks the seals of all rows that carry authority. */
export function checkRows(read: ReadRows, seals: RowSeals): SealedRowsCheck {
  const broken: UnsealedRow[] = [];
  let [intact, brokenCount] = [0, 0];
  for (const table of SEALED_NAMES) {
    for (const row of read(`${selectOf(table)} WHERE ${SEALED_TABLES[table].sealed}`)) {
      if (seals.isIntact(table, { ...row, seal: row.seal ?? null })) {
        intact += 1;
        continue;
      }
      brokenCount += 1;
      const values = sealedValues(table, row);
      if (broken.length < MOST_LISTED) broken.push({ table, ...rowName(table, values), values });
    }
  }
  return { intact, broken, brokenCount };
}

/**
 * Whether any row was sealed with this key. If so, the rows belong to it, whatever else the database says about its key
 * or about rows without seals: only the key's holder can have made that seal.
 */
export function hasIntactRow(read: ReadRows, seals: RowSeals): boolean {
  for (const table of SEALED_NAMES) {
    for (const row of read(`${selectOf(table)} WHERE seal IS NOT NULL`)) {
      if (seals.isIntact(table, row)) return true;
    }
  }
  return false;
}

/** All columns, since a database from an earlier version lacks those that were added since. */
function selectOf(table: SealedName): string {
  return `SELECT * FROM main.${table}`;
}

function sealedValues(
  table: SealedName,
  row: Readonly<Record<string, SqlValue>>,
): Readonly<Record<string, SqlValue>> {
  return Object.fromEntries(
    sealedColumnNames(table)
      .filter((column) => column in row)
      .map((column) => [column, row[column] ?? null]),
  );
}
