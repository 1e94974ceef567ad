import { systemClock } from "../../base/clock.ts";
import { OperatorError } from "../../base/errors.ts";
import { createLog } from "../../base/log.ts";
import type { Config } from "../../config/config.ts";
import { DirectoryInUse } from "../../store/lock.ts";
import { openUnlessInUse, withGateway } from "../operator.ts";
import { resolveConfig } from "../options.ts";
import { type KeyOptions, type LedgerKeysView, readKeys, showKeys } from "./key.ts";

export interface RotateKeyOptions extends KeyOptions {
  readonly lost?: boolean;
}

/** Replaces the key that signs all ledgers of the node, and prints the new verifier key. */
export async function rotateLedgerKey(options: RotateKeyOptions): Promise<void> {
  const { config } = await resolveConfig(options);
  if (options.lost) await replaceLostKey(config);
  const keys = await withGateway(config, options.workspace, (api) =>
    options.lost ? readKeys(api) : api.json<LedgerKeysView>("POST", "/operator/ledger/rotate-key"),
  );
  showKeys(keys, options);
}

/** Runs only in this process: a server does not start without its key, and a running server still has it. */
async function replaceLostKey(config: Config): Promise<void> {
  if (!(await isKeyLost(config))) {
    throw new OperatorError(
      "the signing key is not lost",
      "omit --lost, so that the old key vouches for the new one",
    );
  }
  const { openGateway } = await import("../../gateway.ts");
  const gateway = await openGateway(config, {
    log: createLog("warn", systemClock),
    replaceLostLedgerKey: true,
  });
  await gateway.stop();
}

/** @throws OperatorError if another process holds the data directory */
async function isKeyLost(config: Config): Promise<boolean> {
  try {
    const gateway = await openUnlessInUse(config);
    if (!gateway) throw new DirectoryInUse(config.dataDir);
    await gateway.stop();
    return false;
  } catch (error) {
    // Any other obstacle would also prevent opening with another key, and is reported then.
    if (error instanceof OperatorError && !(error instanceof DirectoryInUse)) return true;
    throw error;
  }
}
