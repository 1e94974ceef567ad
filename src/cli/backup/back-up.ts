import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { systemClock } from "../../base/clock.ts";
import type { LoadedConfig } from "../../config/config.ts";
import { redactUrl } from "../../config/redact.ts";
import { makeBackup } from "../../store/backup/make.ts";
import { CONFIG_FILE, type Manifest } from "../../store/backup/manifest.ts";
import { type OutputFile, openOutputFile } from "../output-file.ts";
import { ByteProgress } from "../progress.ts";
import { recordBackup } from "./record.ts";

export interface BackupRequest {
  readonly loaded: LoadedConfig;
  readonly withKeys: boolean;
  readonly signal: AbortSignal;
}

/** What `--json` prints. */
export interface MadeBackup extends Pick<Manifest, "created_at" | "ledgers" | "with_keys"> {
  readonly file: string;
  readonly bytes: number;
}

/**
 * Writes a backup to a file, which appears under its name once it is completely on disk. It is recorded in the ledgers by
 * the running server, if there is one, before anything is copied.
 * @throws OperatorError
 */
export async function backUp({
  loaded,
  withKeys,
  signal,
  file,
}: BackupRequest & { readonly file: string }): Promise<MadeBackup> {
  const { config } = loaded;
  const withConfig = withKeys || !hasSecrets(loaded);
  if (!withConfig) {
    tell(`${CONFIG_FILE} contains secrets, so it is left out; --with-keys includes it`);
  }
  await recordBackup(config, { file: basename(file), withKeys });
  const progress = new ByteProgress(process.stderr);
  let output: OutputFile | undefined;
  const backup = await makeBackup({
    dataDir: config.dataDir,
    ...{ withKeys, withConfig, signal },
    copyPath: copyPathOf(file),
    now: new Date(systemClock.now()),
    progress: (step, done, total) => progress.show(`${step} the database`, done, total),
  });
  let bytes = 0;
  try {
    output = await openOutputFile(file);
    for await (const chunk of backup.bytes) {
      signal.throwIfAborted();
      if (!(await output.write(chunk))) break;
      bytes += chunk.length;
    }
    await output.keep();
  } catch (error) {
    await output?.discard();
    throw error;
  } finally {
    backup.close();
    progress.end();
  }
  const { created_at, ledgers, with_keys } = backup.manifest;
  return { file, bytes, created_at, with_keys, ledgers };
}

/** On the disk of the backup, which needs the room anyway; standard output has none. */
function copyPathOf(file: string): string {
  const folder = file === "-" ? tmpdir() : dirname(resolve(file));
  const name = file === "-" ? "gatehouse-backup" : basename(file);
  return join(folder, `.${name}.${process.pid}.copy`);
}

/** Whether a secret that the program uses, or a URL's user and password, is written in the configuration file. */
function hasSecrets({ config, values }: LoadedConfig): boolean {
  let text: string;
  try {
    text = readFileSync(join(config.dataDir, CONFIG_FILE), "utf8");
  } catch {
    // There is none, or it cannot be read, which then fails the backup with its reason.
    return false;
  }
  return values.some(({ value, secret }) => {
    if (typeof value !== "string" || value === "") return false;
    return (secret || redactUrl(value) !== value) && text.includes(value);
  });
}

function tell(line: string): void {
  process.stderr.write(`gatehouse: ${line}\n`);
}
