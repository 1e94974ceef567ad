import type { SqlValue } from "../db.ts";

/** A table that both engines have. */
export interface CopiedTable {
  readonly name: string;
  readonly columns: readonly string[];
  /** The columns of its primary key, in which its rows are ordered. */
  readonly key: readonly string[];
}

export type CopiedRow = Readonly<Record<string, SqlValue>>;

/** `"a", "b"`: some columns have the names of SQL's words. */
export function columnList(columns: readonly string[]): string {
  return columns.map((column) => `"${column}"`).join(", ");
}

/** Reads all rows in the order of the table's key, which is the same in both engines. */
export function selectAll({ name, columns, key }: CopiedTable): string {
  return `SELECT ${columnList(columns)} FROM ${name} ORDER BY ${columnList(key)}`;
}
