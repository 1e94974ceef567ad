import { DatabaseUnreadable, NEWEST_SCHEMA, type ReadOnlyDatabase } from "../../store/sqlite/read-only.ts";
import type { VerificationReport } from "./report.ts";
import { checkedTables } from "./schema.ts";

/** Whether the file is a Gatehouse database with a schema that this program knows. Otherwise reports why not. */
export function isVerifiable(database: ReadOnlyDatabase, report: VerificationReport): boolean {
  const { isOurs, schemaVersion } = database;
  if (!isOurs || schemaVersion < 1) {
    report.undecided(
      "not_gatehouse",
      "The database file is not a Gatehouse database: another program wrote it, or its header was overwritten.",
    );
    return false;
  }
  if (schemaVersion <= NEWEST_SCHEMA) return true;
  report.undecided(
    "schema_new",
    `The data directory was written by a newer Gatehouse (schema ${schemaVersion}, this program knows schema ${NEWEST_SCHEMA}). Verify it with that version.`,
  );
  return false;
}

/** Reports damaged pages and indexes of the tables that contain evidence, or what the server acts on. */
export function checkIntegrity(database: ReadOnlyDatabase, report: VerificationReport): void {
  for (const table of checkedTables(database.schemaVersion)) {
    try {
      for (const problem of database.integrityProblems(table)) {
        report.tampered(
          "database_damaged",
          `The table ${table} is damaged, or was edited outside Gatehouse: ${problem}.`,
        );
      }
    } catch (error) {
      if (!(error instanceof DatabaseUnreadable)) throw error;
      reportUnreadable(report, error);
    }
  }
}

export function reportUnreadable(report: VerificationReport, error: DatabaseUnreadable): void {
  if (error.isDamaged) {
    report.tampered(
      "database_damaged",
      `The database file is damaged, or was edited outside Gatehouse: ${error.message}.`,
    );
  } else {
    report.undecided(
      "database_unreadable",
      `The database file cannot be read: ${error.message}. Make it readable for this user, along with the files next to it whose names begin with its name.`,
    );
  }
}
