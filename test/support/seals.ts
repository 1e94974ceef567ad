import type { Database } from "bun:sqlite";
import type { SqlValue } from "../../src/store/db.ts";
import { RowSeals, sealedColumns } from "../../src/store/seals/seals.ts";
import { SEALED_NAMES, SEALED_TABLES, type SealedName } from "../../src/store/seals/tables.ts";
import { openSecretKey } from "../../src/store/secret-key.ts";
import type { SealOptions } from "../../src/store/sqlite/open-seals.ts";

/** Seals for stores that tests open without a gateway, always under the same key. */
export const SEALS: SealOptions = {
  key: openSecretKey({ masterKey: Buffer.alloc(32, 7).toString("hex"), dataDir: "nowhere" }),
};

/** Seals as the gateway of a data directory makes them. */
export function sealsOf(dataDir: string): SealOptions {
  return { key: openSecretKey({ masterKey: undefined, dataDir }) };
}

/** Seals a table's rows unchanged, either like the gateway of a data directory or with a test's own seals. */
export function reseal(file: Database, by: string | SealOptions, table: SealedName): void {
  const { key: secretKey } = typeof by === "string" ? sealsOf(by) : by;
  const seals = new RowSeals(secretKey.secret);
  const { key, sealed } = SEALED_TABLES[table];
  const where = key.map((column) => `${column} = ?`).join(" AND ");
  const rows = file
    .query<Record<string, SqlValue>, []>(`SELECT ${sealedColumns(table)} FROM ${table} WHERE ${sealed}`)
    .all();
  for (const row of rows) {
    file
      .query(`UPDATE ${table} SET seal = ? WHERE ${where}`)
      .run(seals.sealOf(table, row), ...key.map((column) => row[column] ?? null));
  }
}

/**
 * Seals all rows unchanged. A test's findings then come from something other than the seals, as with restored rows.
 */
export function resealAll(file: Database, dataDir: string): void {
  for (const table of SEALED_NAMES) reseal(file, dataDir, table);
}
