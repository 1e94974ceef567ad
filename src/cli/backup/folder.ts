import { readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { systemClock } from "../../base/clock.ts";
import { OperatorError } from "../../base/errors.ts";
import type { Config } from "../../config/config.ts";
import { instanceOf } from "../../store/backup/instance.ts";
import { databasePath } from "../../store/directory.ts";
import { environmentFault } from "../environment-fault.ts";
import { type BackupRequest, backUp, type MadeBackup } from "./back-up.ts";

/**
 * What the names of a server's backups begin with: the servers of several data directories may use one folder. After it, they
 * have a time, by which they sort.
 */
function prefixOf({ dataDir }: Config): string {
  return `gatehouse-${instanceOf(databasePath(dataDir))}-`;
}

const TIME = /^\d{8}T\d{6}Z\.tar$/;

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

/**
 * Makes a backup in a folder, and removes old ones of the same server only once it is complete. Those that are dated later, by
 * a clock that was wrong, stay.
 */
export async function toFolder({ folder, keep, ...request }: FolderRequest): Promise<MadeBackup> {
  const prefix = prefixOf(request.config);
  const name = `${prefix}${timeText(systemClock.now())}.tar`;
  const made = await backUp({ ...request, file: join(folder, name) });
  if (keep !== undefined) {
    const earlier = readdirSync(folder).filter(
      (each) => each.startsWith(prefix) && TIME.test(each.slice(prefix.length)) && each < name,
    );
    for (const each of earlier.sort().slice(0, earlier.length - (keep - 1))) {
      rmSync(join(folder, each), { force: true });
    }
  }
  return made;
}

function timeText(ms: number): string {
  return new Date(ms).toISOString().replace(/[-:]|\.\d+/g, "");
}

interface ScheduleRequest extends FolderRequest {
  readonly everyMs: number;
  show(made: MadeBackup): void;
}

/** Makes backups until a signal arrives, also after one that has failed. */
export async function backUpEvery({ everyMs, show, ...request }: ScheduleRequest): Promise<void> {
  const { signal } = request;
  while (!signal.aborted) {
    const begun = performance.now();
    try {
      show(await toFolder(request));
    } catch (error) {
      if (signal.aborted) return;
      const fault = error instanceof OperatorError ? error : environmentFault(error);
      const why = fault ? [fault.message, fault.hint].filter(Boolean).join("\n  ") : String(error);
      process.stderr.write(`gatehouse: this backup failed: ${why}\n`);
    }
    const left = Math.max(0, everyMs - (performance.now() - begun));
    await wait(left, undefined, { signal }).catch(() => {});
  }
}
