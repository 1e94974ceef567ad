import type { Db } from "../../src/store/db.ts";
import { KEYS } from "../../src/store/postgres/migrations/007-keys.ts";
import { SealedKeys } from "../../src/store/sealed-keys.ts";
import { requireMasterKey } from "../../src/store/secret-key.ts";

/** SQLite's stores have no such table: a single node keeps its keys in files. */
export async function createSealedKeysTable(db: Db): Promise<void> {
  await db.run(KEYS.sql.replaceAll(' COLLATE "C"', ""));
}

/** The keys of a store as a node opens them whose master key consists of this byte. */
export function sealedKeys(db: Db, masterByte = 1): Promise<SealedKeys> {
  return SealedKeys.open(db, requireMasterKey(Buffer.alloc(32, masterByte).toString("hex")));
}
