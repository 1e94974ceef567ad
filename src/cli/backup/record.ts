import { OperatorError } from "../../base/errors.ts";
import type { Config } from "../../config/config.ts";
import { readRuntime } from "../../store/runtime.ts";
import { withServer } from "../operator.ts";

/**
 * Lets the running server record in all ledgers that a backup is made. Without a server nothing is recorded, since a backup
 * changes nothing in the directory: not even an older schema, which it may be made to keep. A backup is made even if the
 * server cannot record it: its owner may need it more than ever then.
 */
export async function recordBackup(
  config: Config,
  { file, withKeys }: { readonly file: string; readonly withKeys: boolean },
): Promise<void> {
  if (!readRuntime(config.dataDir)) return;
  try {
    await withServer(config, "default", (api) =>
      api.json("POST", "/operator/backups", { file, with_keys: withKeys }),
    );
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    process.stderr.write(`gatehouse: no ledger records this backup: ${error.message}\n`);
  }
}
