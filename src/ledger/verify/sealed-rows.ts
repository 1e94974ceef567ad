import type { SqlValue } from "../../store/db.ts";
import { RowSeals, sealedColumns } from "../../store/seals/seals.ts";
import { SEALED_NAMES, SEALED_TABLES } from "../../store/seals/tables.ts";
import type { SecretKey } from "../../store/secret-key.ts";
import type { ReadOnlyDatabase } from "../../store/sqlite/read-only.ts";
import type { Report } from "./report.ts";

/** The first schema with sealed rows. */
export const FIRST_WITH_SEALS = 15;
const LABEL = "Rows beside the ledger";

/** Checks the seals of all rows that carry authority. Without the key, only reports that they were not checked. */
export function checkSealedRows(
  database: ReadOnlyDatabase,
  key: SecretKey | undefined,
  report: Report,
): void {
  if (database.schemaVersion < FIRST_WITH_SEALS) return;
  if (!key) {
    report.fact(LABEL, "not checked: checking their seals requires the directory's secrets.key");
    return;
  }
  const stored = database.get<{ value: string }>("SELECT value FROM main.meta WHERE key = 'seal_key'");
  if (stored?.value !== Buffer.from(key.id).toString("hex")) {
    report.fact(LABEL, "not checked: they were not sealed with the directory's secrets.key");
    return;
  }
  const seals = new RowSeals(key.secret);
  let [checked, broken] = [0, 0];
  for (const table of SEALED_NAMES) {
    const rows = database.rows<Readonly<Record<string, SqlValue>>>(
      `SELECT ${sealedColumns(table)} FROM main.${table} WHERE ${SEALED_TABLES[table].sealed}`,
    );
    for (const row of rows) {
      checked += 1;
      if (seals.isIntact(table, row)) continue;
      broken += 1;
      const name = SEALED_TABLES[table].key.map((column) => String(row[column])).join("/");
      report.tampered(
        "row_changed",
        `The row ${name} of the table ${table} is not one that the server wrote: it was changed or added without the key. The server ignores it.`,
      );
    }
  }
  if (broken === 0) report.fact(LABEL, `${checked} rows are as the server wrote them`);
}
