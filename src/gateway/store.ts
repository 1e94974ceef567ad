import type { Config } from "../config/config.ts";
import type { HeadStore } from "../ledger/heads/heads.ts";
import { nodeHeadStore } from "../ledger/heads/open-node-heads.ts";
import { SigningKeyFile } from "../ledger/keys/file.ts";
import type { SigningKeyStore } from "../ledger/keys/signing-key.ts";
import { localNodes } from "../nodes/local-nodes.ts";
import type { Nodes } from "../nodes/nodes.ts";
import { WebhookSecretFile, type WebhookSecretStore } from "../notify/secret.ts";
import { backUpBeforeUpgrade } from "../store/backup/before-upgrade.ts";
import { type RestoredNote, readRestoredNote } from "../store/backup/restored-note.ts";
import { claimDirectory } from "../store/claim.ts";
import type { Db } from "../store/db.ts";
import { databasePath } from "../store/directory.ts";
import type { FileStore } from "../store/file-store.ts";
import { removeRuntime } from "../store/runtime.ts";
import type { SealedRowsCheck } from "../store/seals/unsealed-rows.ts";
import { openSecretKey, type SecretKey } from "../store/secret-key.ts";
import { openSqlite } from "../store/sqlite/open.ts";
import type { IndexLocation } from "../vault/messages.ts";
import type { Platform } from "./platform.ts";

/** The data directory, claimed for this process, with its store open. */
export interface Store {
  readonly db: Db;
  readonly files: FileStore;
  readonly secretKey: SecretKey;
  /** Where the ledgers' key and heads, and the webhook's secret, are. */
  readonly keyStore: SigningKeyStore;
  readonly headStore: HeadStore;
  readonly webhookSecrets: WebhookSecretStore;
  /** This process among those that share the store. */
  readonly nodes: Nodes;
  /** How this store was restored from a backup, until a start has taken account of it. */
  readonly restored: RestoredNote | null;
  /** Where the vault's threads read the index. */
  readonly index: IndexLocation;
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
export async function openStore(
  config: Config,
  { clock, ids, random, log }: Platform,
  { acceptRows, syncWorker, rerunWork = false }: StoreOptions = {},
): Promise<Store> {
  const lock = claimDirectory(config.dataDir, log);
  try {
    // Left by a killed server. Another program may be listening at its address now.
    removeRuntime(config.dataDir);
    await backUpBeforeUpgrade({ ...config, now: new Date(clock.now()), log });
    const database = databasePath(config.dataDir);
    const restored = readRestoredNote(config.dataDir);
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
    const nodes = localNodes(ids("node"), clock);
    return {
      db,
      files: db,
      nodes,
      restored,
      secretKey,
      keyStore: new SigningKeyFile(config.dataDir),
      headStore: nodeHeadStore,
      webhookSecrets: new WebhookSecretFile(config.dataDir),
      index: { engine: "sqlite", database, extension: db.vectors.path },
      async close() {
        await nodes.close();
        await db.close();
        lock.release();
      },
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}
