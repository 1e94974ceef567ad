import { parseSignedCheckpoint } from "../../ledger/proof/checkpoint.ts";
import { refusal, withGateway } from "../operator.ts";
import { type ConfigOptions, resolveConfig } from "../options.ts";
import { printJson } from "../output.ts";
import { openOutputFile } from "../output-file.ts";

export interface CheckpointOptions extends ConfigOptions {
  readonly output: string;
  readonly workspace: string;
  readonly json?: boolean;
}

/** Prints the ledger's current checkpoint as a C2SP signed note, or writes it to a file. */
export async function printCheckpoint(options: CheckpointOptions): Promise<void> {
  const { config } = await resolveConfig(options);
  const text = await withGateway(config, options.workspace, async (api) => {
    const response = await api.fetch("GET", "/v1/ledger/checkpoint");
    if (!response.ok) throw await refusal(response);
    return response.text();
  });
  if (options.json) {
    const { origin, size, root } = parseSignedCheckpoint(text).checkpoint;
    printJson({ origin, size, root: root.toBase64(), checkpoint: text });
    return;
  }
  const file = await openOutputFile(options.output);
  try {
    await file.write(new TextEncoder().encode(text));
    await file.keep();
  } catch (error) {
    await file.discard();
    throw error;
  }
}
