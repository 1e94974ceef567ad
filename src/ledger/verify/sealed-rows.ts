import { RowSeals } from "../../store/seals/seals.ts";
import { checkRows, type ReadRows } from "../../store/seals/unsealed-rows.ts";
import type { SecretKey } from "../../store/secret-key.ts";
import type { ReadOnlyDatabase } from "../../store/sqlite/read-only.ts";
import { counted, type VerificationReport } from "./report.ts";

/** The first schema with sealed rows. */
export const FIRST_WITH_SEALS = 15;
const LABEL = "Rows alongside the ledger";

/**
 * Checks the seals of all rows that carry authority. Without the key, only reports that they were not checked.
 * @param namesKey whether the database names the key. A store that nodes share does not: its keys are sealed with it
 */
export function checkSealedRows(
  database: ReadOnlyDatabase,
  key: SecretKey | undefined,
  report: VerificationReport,
  namesKey = true,
): void {
  if (database.schemaVersion < FIRST_WITH_SEALS) return;
  if (!key) {
    report.fact(LABEL, "not checked: checking their seals requires the directory's secrets.key");
    return;
  }
  const read: ReadRows = (sql) => database.rows(sql);
  const { intact, broken, brokenCount } = checkRows(read, new RowSeals(key.secret));
  const stored = database.get<{ value: string }>("SELECT value FROM main.meta WHERE key = 'seal_key'");
  if (namesKey && stored?.value !== Buffer.from(key.id).toString("hex")) {
    if (intact === 0 && !key.hasSealed) {
      report.fact(LABEL, "not checked: they were not sealed with the directory's secrets.key");
      return;
    }
    if (intact === 0) {
      report.undecided(
        "seals_unknown",
        "No row is sealed with the directory's secrets.key, although it has sealed rows: the key belongs to another database, or the seals were removed.",
      );
      return;
    }
    report.tampered(
      "seal_key_changed",
      `The database names a different key from the one with which ${counted(intact)} of its rows are sealed: someone changed that name.`,
    );
  }
  for (const { table, name } of broken) {
    report.tampered(
      "row_changed",
      `The row ${name} of the table ${table} was not written by the server: it was changed or added without the key. The server ignores it.`,
    );
  }
  if (brokenCount === 0) report.fact(LABEL, `${intact} rows are as the server wrote them`);
}
