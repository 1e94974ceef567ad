import { OperatorError } from "../base/errors.ts";
import { hasKey } from "../ledger/keys/file.ts";
import { findSecretKey } from "../store/secret-key.ts";
import type { ReadOnlyDatabase } from "../store/sqlite/read-only.ts";

/** Whether a key in a data directory is the one that its database was used with. `none`: the database has had none. */
export type Fit = "fits" | "missing" | "differs" | "unusable" | "none";

export interface KeyFit {
  readonly fit: Fit;
  /** Why the key is unusable. */
  readonly error?: OperatorError;
}

/** The first schema with keys of ledgers, and with seals of rows. */
const FIRST_WITH_KEYS = 4;
const FIRST_WITH_SEALS = 15;

/** The key that signs the ledgers. */
export function ledgerKeyFit(directory: string, database: ReadOnlyDatabase): KeyFit {
  if (database.schemaVersion < FIRST_WITH_KEYS) return { fit: "none" };
  const inForce = database.get<{ key: Uint8Array }>(
    "SELECT public_key AS key FROM ledger_keys ORDER BY id DESC LIMIT 1",
  );
  if (!inForce) return { fit: "none" };
  try {
    return { fit: hasKey(directory, inForce.key) };
  } catch (error) {
    return unusable(error);
  }
}

/** The key that decrypts secrets and seals rows. @param masterKey the setting, if it is known and set */
export function secretKeyFit(
  directory: string,
  masterKey: string | undefined,
  database: ReadOnlyDatabase,
): KeyFit {
  if (database.schemaVersion < FIRST_WITH_SEALS) return { fit: "none" };
  const stored = database.get<{ value: string }>("SELECT value FROM meta WHERE key = 'seal_key'");
  if (!stored) return { fit: "none" };
  try {
    const key = findSecretKey({ masterKey, dataDir: directory });
    if (!key) return { fit: "missing" };
    return { fit: stored.value === Buffer.from(key.id).toString("hex") ? "fits" : "differs" };
  } catch (error) {
    return unusable(error);
  }
}

function unusable(error: unknown): KeyFit {
  if (error instanceof OperatorError) return { fit: "unusable", error };
  throw error;
}
