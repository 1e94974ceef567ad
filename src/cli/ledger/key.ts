import { type OperatorApi, withGateway } from "../operator.ts";
import { type ConfigOptions, resolveConfig } from "../options.ts";
import { print, printJson } from "../output.ts";

export interface KeyOptions extends ConfigOptions {
  readonly workspace: string;
  readonly json?: boolean;
}

/** C2SP verifier keys of a ledger. */
export interface LedgerKeysView {
  readonly vkey: string;
  /** Earlier keys, oldest first; absent if there are none. */
  readonly former_vkeys?: readonly string[];
}

/** Prints the key that verifies the ledger's checkpoints. */
export async function printKey(options: KeyOptions): Promise<void> {
  const { config } = await resolveConfig(options);
  showKeys(await withGateway(config, options.workspace, readKeys), options);
}

export function readKeys(api: OperatorApi): Promise<LedgerKeysView> {
  return api.json<LedgerKeysView>("GET", "/v1/ledger/key");
}

export function showKeys(keys: LedgerKeysView, { json }: { readonly json?: boolean }): void {
  if (json) printJson({ vkey: keys.vkey, former_vkeys: keys.former_vkeys ?? [] });
  else print(keys.vkey);
}
