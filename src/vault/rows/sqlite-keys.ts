import type { Db } from "../../store/db.ts";
import type { DocumentKeys } from "./document-keys.ts";

/** Counts in memory: no other process writes into SQLite's file. */
export async function sqliteKeys(db: Db): Promise<DocumentKeys> {
  // Deleted documents count too: keys are never reused.
  const row = await db.get<{ seq: number }>("SELECT seq FROM sqlite_sequence WHERE name = 'vault_documents'");
  let last = row?.seq ?? 0;
  return { next: async () => ++last };
}
