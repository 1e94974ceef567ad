import { chmodSync, constants, copyFileSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import type { Command } from "commander";
import { systemClock } from "../base/clock.ts";
import { OperatorError } from "../base/errors.ts";
import type { TrustAnchors } from "../ledger/proof/verification.ts";
import { type DirectoryVerification, verifyDirectory } from "../ledger/verify/directory.ts";
import { tools } from "../ledger/verify/tools.ts";
import { BackupDamaged } from "../store/backup/archive.ts";
import { MARK_FILE, type Manifest } from "../store/backup/manifest.ts";
import { writeRestoredNote } from "../store/backup/restored-note.ts";
import { unpackBackup } from "../store/backup/unpack.ts";
import { databasePath, isFile } from "../store/directory.ts";
import { NEWEST_SCHEMA, openReadOnly } from "../store/sqlite/read-only.ts";
import { ledgerKeyFit, secretKeyFit } from "./keys-fit.ts";
import { printVerification } from "./ledger/verification-view.ts";
import { EXIT_CODES, isUntrusting, keyBeside, readTrust } from "./ledger/verify.ts";
import { createDirectory } from "./new-directory.ts";
import { plain } from "./options.ts";
import { print, printJson } from "./output.ts";
import { ByteProgress } from "./progress.ts";

interface RestoreOptions {
  readonly data: string;
  readonly keys?: string;
  readonly continueTasks?: boolean;
  readonly key?: string;
  readonly checkpoint?: string;
  readonly json?: boolean;
}

const HELP = `
  gatehouse restore gatehouse.tar --data /var/lib/gatehouse --keys /safe/gatehouse-keys

Checks every byte of the backup, unpacks it, and verifies its ledgers as \`gatehouse ledger verify\` does. Only then the
directory gets its name: if anything is wrong, nothing was restored.

A backup without keys needs the keys that were kept elsewhere: name their folder with --keys, or put them into the
directory before its first start.

Tasks that had not ended may have gone on after the backup was made. So the first start ends them as failed
(\`interrupted\`), and no tool is called twice. With --continue-tasks they go on: for a server that was stopped before
the backup, and never started again. The first start records in all ledgers what was restored.`;

/** `restore`: a data directory from a backup. */
export function restoreCommand(): Command {
  return plain("restore", "make a data directory from a backup, and verify it")
    .argument("<file>", "the backup")
    .requiredOption("--data <new>", "the data directory to make: missing, or empty")
    .option("--keys <dir>", "a folder with the keys that the backup was made without")
    .option("--continue-tasks", "let tasks that had not ended go on (default: they end as failed)")
    .option("--key <file>", "a verifier key that was kept elsewhere, or a file with some")
    .option("--checkpoint <file>", "checkpoints that were kept elsewhere")
    .option("--json", "print JSON")
    .addHelpText("after", HELP)
    .action(restore);
}

interface Restored {
  readonly manifest: Manifest;
  readonly verification: DirectoryVerification;
  /** Keys that the original has, and the new directory has not. */
  readonly missing: readonly string[];
}

async function restore(file: string, options: RestoreOptions): Promise<void> {
  const { data, keys, json = false } = options;
  const trust = await readTrust(options);
  if (!isFile(file)) throw new OperatorError(`there is no file ${file}`, "name a backup", 2);
  if (keys !== undefined && !statSync(keys, { throwIfNoEntry: false })?.isDirectory()) {
    throw new OperatorError(`--keys: there is no folder ${keys}`, "name the folder with the keys", 2);
  }
  const { manifest, verification, missing } = await createDirectory(
    data,
    basename(databasePath(data)),
    async (directory) => {
      const restored = await restoreInto(directory, file, { keys, trust, json });
      const { created_at, program } = restored.manifest;
      writeRestoredNote(directory, {
        ...{ file: basename(file), created_at, program: program.version, recorded: false },
        restored_at: new Date(systemClock.now()).toISOString(),
        unfinished: options.continueTasks ? "continue" : "end",
      });
      return restored;
    },
  );
  if (json) {
    printJson({ data, created_at: manifest.created_at, missing_keys: missing, verification });
    return;
  }
  printVerification(verification, isUntrusting(trust));
  print(`\nRestored to ${data}, as of ${manifest.created_at}.`);
  if (manifest.files.some(({ name }) => name === MARK_FILE)) {
    print("It needs the setting master_key of the original: GATEHOUSE_MASTER_KEY.");
  }
  if (missing.length > 0) {
    print(`Before its first start, put these keys into it, with mode 0600: ${missing.join(", ")}`);
  }
}

async function restoreInto(
  directory: string,
  file: string,
  { keys, trust, json }: { keys: string | undefined; trust: TrustAnchors; json: boolean },
): Promise<Restored> {
  const manifest = await unpack(file, directory);
  if (manifest.database.schema > NEWEST_SCHEMA) {
    const { schema } = manifest.database;
    throw new OperatorError(
      `the backup ${file} was made by a newer Gatehouse, ${manifest.program.version} (schema ${schema}; this program supports up to ${NEWEST_SCHEMA})`,
      "restore it with that version",
    );
  }
  const missing = manifest.keys.filter((name) => !isFile(join(directory, name)));
  const found = missing.filter((name) => keys !== undefined && isFile(join(keys, name)));
  for (const name of found) {
    copyFileSync(join(keys ?? "", name), join(directory, name), constants.COPYFILE_EXCL);
    chmodSync(join(directory, name), 0o600);
  }
  const path = databasePath(directory);
  const secretKey = keyBeside(path);
  if (keys !== undefined) requireFitting(directory, found, keys);
  const verification = await verifyDirectory({ path, trust, workspace: null, secretKey }, tools);
  if (verification.verdict !== "holds" && !isOnlyOld(verification)) {
    if (json) printJson(verification);
    else printVerification(verification, isUntrusting(trust));
    throw new OperatorError(
      `the ledgers in the backup ${file} do not verify, as shown above, so nothing was restored`,
      "restore another backup; whether the original verifies is shown by: gatehouse ledger verify",
      EXIT_CODES[verification.verdict] === 3 ? 3 : 1,
    );
  }
  return { manifest, verification, missing: missing.filter((name) => !found.includes(name)) };
}

/** Ledgers of the first schemas have no signatures. The first start upgrades them, and signs what it finds. */
function isOnlyOld({ findings, ledgers }: DirectoryVerification): boolean {
  const all = [...findings, ...ledgers.flatMap((ledger) => ledger.findings)];
  return all.every(({ code }) => code === "schema_old");
}

/** @throws OperatorError if a key that was put beside the database is not the one that it was used with */
function requireFitting(directory: string, names: readonly string[], keys: string): void {
  const database = openReadOnly(databasePath(directory));
  try {
    for (const name of names) {
      const { fit, error } =
        name === "ledger.key"
          ? ledgerKeyFit(directory, database)
          : name === "secrets.key"
            ? secretKeyFit(directory, undefined, database)
            : { fit: "none" };
      if (error) throw error;
      if (fit !== "differs") continue;
      throw new OperatorError(
        `--keys: ${join(keys, name)} is not the key that the backup's database was used with`,
        "name the folder with the keys of the same server, as they were when the backup was made",
      );
    }
  } finally {
    database.close();
  }
}

/** @throws OperatorError if the backup is damaged */
async function unpack(file: string, directory: string): Promise<Manifest> {
  const progress = new ByteProgress(process.stderr);
  try {
    return await unpackBackup({
      ...{ file: Bun.file(file), directory },
      progress: (step, done, total) => progress.show(`${step} the backup`, done, total),
    });
  } catch (error) {
    if (!(error instanceof BackupDamaged)) throw error;
    throw new OperatorError(
      `${file} cannot be restored: ${error.message}`,
      "restore another backup; nothing was written",
    );
  } finally {
    progress.end();
  }
}
