import { readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { systemClock } from "../../base/clock.ts";
import { OperatorError } from "../../base/errors.ts";
import { environmentFault } from "../environment-fault.ts";
import { type BackupRequest, backUp, type MadeBackup } from "./back-up.ts";

/** The names that this program gives backups, which sort by time. No other file in a folder is ever removed. */
const NAME = /^gatehouse-\d{8}T\d{6}Z\.tar$/;

interface FolderRequest extends BackupRequest {
  readonly folder: string;
  /** How many of the newest backups stay. Undefined: all. */
  readonly keep: number | undefined;
}

/** @throws OperatorError with exit code 2 if it is no folder: a mistyped one, or a disk that is not mounted */
export function requireFolder(folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return;
  throw new OperatorError(`--to: there is no folder ${folder}`, "create it, or mount its disk", 2);
}

/** Makes a backup in a folder, and removes old ones only once it is complete. */
export async function toFolder({ folder, keep, ...request }: FolderRequest): Promise<MadeBackup> {
  const made = await backUp({ ...request, file: join(folder, nameAt(systemClock.now())) });
  if (keep !== undefined) {
    const backups = readdirSync(folder).filter((name) => NAME.test(name));
    for (const name of backups.sort().slice(0, -keep)) rmSync(join(folder, name), { force: true });
  }
  return made;
}

function nameAt(ms: number): string {
  const time = new Date(ms).toISOString().replace(/[-:]|\.\d+/g, "");
  return `gatehouse-${time}.tar`;
}

interface ScheduleRequest extends FolderRequest {
  readonly everyMs: number;
  show(made: MadeBackup): void;
}

/** Makes backups until a signal arrives. One that fails for a reason of the environment does not end this. */
export async function backUpEvery({ everyMs, show, ...request }: ScheduleRequest): Promise<void> {
  const { signal } = request;
  while (!signal.aborted) {
    const begun = performance.now();
    try {
      show(await toFolder(request));
    } catch (error) {
      if (signal.aborted) return;
      const fault = error instanceof OperatorError ? error : environmentFault(error);
      if (!fault) throw error;
      process.stderr.write(`gatehouse: this backup failed: ${fault.message}\n`);
    }
    const left = Math.max(0, everyMs - (performance.now() - begun));
    await wait(left, undefined, { signal }).catch(() => {});
  }
}
