import { existsSync } from "node:fs";
import { type Command, InvalidArgumentError } from "commander";
import { parseDuration } from "../../base/duration.ts";
import { OperatorError } from "../../base/errors.ts";
import { databasePath } from "../../store/directory.ts";
import { stoppedBySignals } from "../interruption.ts";
import { type ConfigOptions, command, resolveConfig } from "../options.ts";
import { print, printJson } from "../output.ts";
import { backUp } from "./back-up.ts";
import { backUpEvery, requireFolder, toFolder } from "./folder.ts";

interface BackupOptions extends ConfigOptions {
  readonly withKeys?: boolean;
  readonly to?: string;
  /** Milliseconds. */
  readonly every?: number;
  readonly keep?: number;
  readonly json?: boolean;
}

const WRONG_USAGE = 2;
/** A timer cannot wait longer. */
const MAX_INTERVAL_MS = 2 ** 31 - 1;

const HELP = `
  gatehouse backup /mnt/backups/gatehouse.tar
  gatehouse backup --to /mnt/backups --every 6h --keep 14

The backup is one file: everything in the data directory as of one moment, while a running server goes on. It is
checked and unpacked by \`gatehouse restore FILE --data NEW\`. As FILE, - is standard output.

The keys and gatehouse.yaml are left out: keep copies of ledger.key, secrets.key and webhook.key elsewhere. With
--with-keys, whoever has the backup can read every secret and sign evidence.

With --every, the command keeps running and makes a backup at once and then after each interval. One that fails is
reported, and the next is made nevertheless.

Servers that share a store are backed up with PostgreSQL's own tools.`;

/** `backup`: the data directory in one file. */
export function backupCommand(): Command {
  return command("backup", "copy the data directory into one file, while the server runs")
    .argument("[file]", "the file to write")
    .option("--with-keys", "include the keys, and gatehouse.yaml, which may contain others")
    .option("--to <dir>", "write a file named after the time into this folder")
    .option(
      "--every <duration>",
      "with --to: keep running, and make a backup each time, such as 6h",
      interval,
    )
    .option("--keep <count>", "with --to: remove all but this many of the newest backups there", count)
    .option("--json", "print JSON")
    .addHelpText("after", HELP)
    .action(backup);
}

async function backup(file: string | undefined, options: BackupOptions): Promise<void> {
  const { to, every, keep, withKeys = false } = options;
  if ((file === undefined) === (to === undefined)) throw wrong("name either a file or, with --to, a folder");
  if (to === undefined && every !== undefined) throw wrong("--every: name a folder with --to");
  if (to === undefined && keep !== undefined) throw wrong("--keep: name a folder with --to");
  if (file === "-" && options.json) throw wrong("--json: standard output has the backup");
  if (file === "-" && process.stdout.isTTY) throw wrong("a backup cannot be written to a terminal");
  const { config } = await resolveConfig(options);
  const { dataDir, store } = config;
  if (store) {
    throw new OperatorError(
      "the store that several servers share is backed up with PostgreSQL's own tools, such as pg_dump",
      "see docs/scaling.md",
      WRONG_USAGE,
    );
  }
  if (!existsSync(databasePath(dataDir))) {
    throw new OperatorError(`there is no database in ${dataDir}`, "choose the directory with --data", 2);
  }
  if (to !== undefined) requireFolder(to);
  const stop = stoppedBySignals("stopped before the backup was complete");
  const show = (made: Awaited<ReturnType<typeof backUp>>) => {
    if (options.json) printJson(made);
    else if (file !== "-") print(made.file);
  };
  const request = { config, withKeys, signal: stop.signal };
  try {
    if (file !== undefined) show(await backUp({ ...request, file }));
    else if (to === undefined) return;
    else if (every === undefined) show(await toFolder({ ...request, folder: to, keep }));
    else await backUpEvery({ ...request, folder: to, keep, everyMs: every, show });
  } finally {
    stop.release();
  }
}

function interval(text: string): number {
  const ms = parseDuration(text);
  if (ms !== undefined && ms >= 1_000 && ms <= MAX_INTERVAL_MS) return ms;
  throw new InvalidArgumentError("It must be a duration from 1s to 24d, such as 6h.");
}

function count(text: string): number {
  if (/^[1-9][0-9]{0,5}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It must be a whole number of at least 1.");
}

function wrong(message: string): OperatorError {
  return new OperatorError(message, "add --help for usage", WRONG_USAGE);
}
