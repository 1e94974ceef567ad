import { openReadOnly } from "../sqlite/read-only.ts";

/** The first schema in which a database has an instance. */
const FIRST_WITH_INSTANCE = 4;
const HEX = /^[0-9a-f]{1,64}$/;

/**
 * What distinguishes a database from all others, also in the origins of its ledgers. "none" if it has nothing yet.
 * @throws DatabaseUnreadable
 */
export function instanceOf(path: string): string {
  const database = openReadOnly(path);
  try {
    if (!database.isOurs || database.schemaVersion < FIRST_WITH_INSTANCE) return "none";
    const row = database.get<{ value: string }>("SELECT value FROM meta WHERE key = 'instance'");
    return row && HEX.test(row.value) ? row.value : "none";
  } finally {
    database.close();
  }
}
