import { closeSync, openSync, readSync, realpathSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, resolve } from "node:path";
import { systemClock } from "../../base/clock.ts";
import { OperatorError } from "../../base/errors.ts";
import type { Config } from "../../config/config.ts";
import { makeBackup } from "../../store/backup/make.ts";
import { MANIFEST_NAME, type Manifest } from "../../store/backup/manifest.ts";
import { type OutputFile, openOutputFile } from "../output-file.ts";
import { ByteProgress } from "../progress.ts";
import { recordBackup } from "./record.ts";

export interface BackupRequest {
  readonly config: Config;
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
  config,
  withKeys,
  signal,
  file,
}: BackupRequest & { readonly file: string }): Promise<MadeBackup> {
  requireReplaceable(file);
  const output = await openOutputFile(file);
  try {
    await recordBackup(config, { file: basename(file), withKeys });
    const made = await writeBackup(output, { config, withKeys, signal, file });
    await output.keep();
    return made;
  } catch (error) {
    await output.discard();
    throw error;
  }
}

async function writeBackup(
  output: OutputFile,
  { config, withKeys, signal, file }: BackupRequest & { readonly file: string },
): Promise<MadeBackup> {
  const progress = new ByteProgress(process.stderr);
  try {
    const backup = await makeBackup({
      dataDir: config.dataDir,
      ...{ withSecrets: withKeys, signal },
      workFolder: workFolderOf(file),
      now: new Date(systemClock.now()),
      progress: (step, done, total) => progress.show(`${step} the database`, done, total),
    });
    try {
      let bytes = 0;
      for await (const chunk of backup.bytes) {
        signal.throwIfAborted();
        if (!(await output.write(chunk)))
          throw new OperatorError("the reader of the backup left before its end");
        bytes += chunk.length;
      }
      const { created_at, ledgers, with_keys } = backup.manifest;
      return { file, bytes, created_at, with_keys, ledgers };
    } finally {
      backup.close();
    }
  } finally {
    progress.end();
  }
}

/** On the disk of the backup, which needs the room anyway; a pipe has none. */
function workFolderOf(file: string): string {
  if (file === "-") return tmpdir();
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats && !stats.isFile()) return tmpdir();
  return dirname(stats ? realpathSync(file) : resolve(file));
}

const NAME_BYTES = Buffer.byteLength(MANIFEST_NAME);

/**
 * A mistyped name, such as that of the database, must not cost the file that has it.
 * @throws OperatorError if there is a file that is not a backup
 */
function requireReplaceable(file: string): void {
  if (file === "-" || !statSync(file, { throwIfNoEntry: false })?.isFile()) return;
  const descriptor = openSync(file, "r");
  try {
    const start = Buffer.alloc(NAME_BYTES);
    const length = readSync(descriptor, start, 0, NAME_BYTES, 0);
    if (length === NAME_BYTES && start.toString() === MANIFEST_NAME) return;
  } finally {
    closeSync(descriptor);
  }
  throw new OperatorError(
    `${file} exists and is not a backup, so it is not overwritten`,
    "name another file, or remove that one first",
    2,
  );
}
