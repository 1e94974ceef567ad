import type { Config, SharedStoreConfig } from "../config/config.ts";
import { sharedHeadStore } from "../ledger/heads/open-shared-heads.ts";
import { SealedSigningKey } from "../ledger/keys/sealed.ts";
import { openNodes } from "../nodes/shared/open-nodes.ts";
import { SealedWebhookSecret } from "../notify/sealed-secret.ts";
import { claimDirectory } from "../store/claim.ts";
import { NO_FILES } from "../store/file-store.ts";
import { openPostgres } from "../store/postgres/open.ts";
import { removeRuntime } from "../store/runtime.ts";
import { SealedKeys } from "../store/sealed-keys.ts";
import { RowSeals } from "../store/seals/seals.ts";
import { requireMasterKey } from "../store/secret-key.ts";
import type { Platform } from "./platform.ts";
import type { Store } from "./store.ts";

/**
 * Phase 1 with a store that several nodes share. The data directory holds only what belongs to this node, such as its
 * address and its checkpoint file.
 *
 * @throws OperatorError if the directory is in use, the database cannot be used, or the master key is missing or is
 *   not the one that the store's keys are sealed under
 */
export async function openSharedStore(
  config: Config,
  { url, directUrl }: SharedStoreConfig,
  { clock, ids, log }: Platform,
): Promise<Store> {
  const masterKey = requireMasterKey(config.masterKey);
  const lock = claimDirectory(config.dataDir, log);
  try {
    // Left by a killed server. Another program may be listening at its address now.
    removeRuntime(config.dataDir);
    const db = await openPostgres({
      url,
      ...(directUrl !== undefined && { directUrl }),
      seals: new RowSeals(masterKey.secret),
    });
    try {
      const keys = await SealedKeys.open(db, masterKey);
      const nodes = await openNodes({ db, url: directUrl ?? url, clock, log, newId: () => ids("node") });
      return {
        db,
        files: NO_FILES,
        nodes,
        restored: null,
        // The store's own keys tell whether this is its master key, and it never had rows without seals.
        secretKey: { ...masterKey, from: "setting", hasSealed: true, markSealed() {} },
        keyStore: new SealedSigningKey(db, keys),
        headStore: sharedHeadStore,
        webhookSecrets: new SealedWebhookSecret(db, keys),
        index: { engine: "postgres", url, ...(directUrl !== undefined && { directUrl }) },
        async close() {
          await nodes.close();
          await db.close();
          lock.release();
        },
      };
    } catch (error) {
      await db.close();
      throw error;
    }
  } catch (error) {
    lock.release();
    throw error;
  }
}
