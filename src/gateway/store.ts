import type { Config } from "../config/config.ts";
import { claimDirectory } from "../store/claim.ts";
import { databasePath } from "../store/directory.ts";
import { removeRuntime } from "../store/runtime.ts";
import type { SealedRowsCheck } from "../store/seals/unsealed-rows.ts";
import { openSecretKey, type SecretKey } from "../store/secret-key.ts";
import { openSqlite, type SqliteDb } from "../store/sqlite/open.ts";
import type { Platform } from "./platform.ts";

/** The data directory, claimed for this process, with its database open. */
export interface Store {
  readonly db: SqliteDb;
  /** Path of the database, for connections of other threads. */
  readonly database: string;
  readonly secretKey: SecretKey;
  /** Closes the database and releases the directory. */
  close(): Promise<void>;
}

export interface StoreOptions {
  /** See `GatewayOptions`. */
  readonly acceptRows?: ((check: SealedRowsCheck) => void) | undefined;
  /** See `SqliteOptions`. */
  readonly syncWorker?: URL;
  /** See `SqliteOptions`. */
  readonly rerunWork?: boolean | undefined;
}

/**
 * Phase 1. @throws OperatorError if the data directory is in use, cannot be written or belongs to a newer version
 */
export function openStore(
  config: Config,
  { random, log }: Platform,
  { acceptRows, syncWorker, rerunWork = false }: StoreOptions = {},
): Store {
  const lock = claimDirectory(config.dataDir, log);
  try {
    // Left by a killed server. Another program may be listening at its address now.
    removeRuntime(config.dataDir);
    const database = databasePath(config.dataDir);
    const secretKey = openSecretKey({ ...config, random });
    const seals = { key: secretKey, acceptRows };
    const db = openSqlite(database, {
      libraries: config.dataDir,
      ...{ seals, rerunWork },
      ...(syncWorker && { syncWorker }),
    });
    if (db.vectors.problem !== null) {
      log.warn("the vault searches only words", { problem: db.vectors.problem });
    }
    return {
      db,
      database,
      secretKey,
      async close() {
        await db.close();
        lock.release();
      },
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}
