import type { Clock } from "../../../base/clock.ts";
import type { Log } from "../../../base/log.ts";
import type { KernelObjects } from "./kernel-objects.ts";
import type { ProgramHomes } from "./program-homes.ts";
import type { SharedFiles } from "./shared-files.ts";
import { killProcessesOf } from "./user-processes.ts";

/**
 * The first of the user ids reserved for connectors' programs. They have no entry in `/etc/passwd`. systemd and
 * Debian assign none of these numbers by themselves, and rootless containers map them.
 */
export const FIRST_UID = 60_706;
export const LAST_UID = 61_183;

export interface ProgramCleanerParts {
  readonly homes: ProgramHomes;
  readonly shared: SharedFiles;
  readonly kernel: KernelObjects;
  readonly clock: Clock;
  readonly log: Log;
}

/** Ends processes, and removes files and kernel objects that programs leave behind. */
export class ProgramCleaner {
  readonly #parts: ProgramCleanerParts;

  constructor(parts: ProgramCleanerParts) {
    this.#parts = parts;
  }

  /**
   * Ends all processes of a program's user, and removes its kernel objects, its files in shared directories and its
   * home. The home is removed last: while it exists, no gateway gives its user to a program.
   * @throws Error if something remains
   */
  async clear(uid: number, home: string): Promise<void> {
    const { clock, kernel, shared, homes } = this.#parts;
    if (!(await killProcessesOf(uid, clock))) throw new Error(`processes of user ${uid} cannot be ended`);
    await kernel.removeOf(uid);
    await shared.removeOf(uid);
    await homes.remove(home);
  }

  /** Removes what programs of an earlier gateway process left when that was killed. Never throws. */
  async clearLeft(): Promise<void> {
    const { homes, log } = this.#parts;
    try {
      for (const { path, uid } of homes.left()) {
        try {
          // The processes of any other user could belong to anyone.
          if (uid >= FIRST_UID && uid <= LAST_UID) await this.clear(uid, path);
          else await homes.remove(path);
        } catch (error) {
          log.warn("files or processes left by a connector's program cannot be removed", {
            uid,
            home: path,
            error,
          });
        }
      }
      homes.close();
    } catch (error) {
      log.warn("files and processes left by connectors' programs cannot be listed", { error });
    }
  }
}
