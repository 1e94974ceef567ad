import { lstat, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Directories in which every user of a machine may create files. Some systems lack some of them. */
const SHARED_DIRECTORIES = ["/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock"];

/** Files that programs leave in shared directories, where a later program would trust files of its own user. */
export class SharedFiles {
  readonly #directories: readonly string[];

  constructor(directories: readonly string[] = [...SHARED_DIRECTORIES, tmpdir()]) {
    this.#directories = [...new Set(directories)];
  }

  /** The users that own an entry of a shared directory. */
  async owners(): Promise<ReadonlySet<number>> {
    return new Set((await this.#entries()).map(({ uid }) => uid));
  }

  /** Removes a user's entries there. MUST be called only for a program's user, when none of its processes runs. */
  async removeOf(owner: number): Promise<void> {
    for (const { path, uid } of await this.#entries()) {
      if (uid === owner) await rm(path, { recursive: true, force: true });
    }
  }

  async #entries(): Promise<readonly { readonly path: string; readonly uid: number }[]> {
    const found = [];
    for (const directory of this.#directories) {
      for (const name of await namesIn(directory)) {
        const path = join(directory, name);
        // Other users may add and remove entries during the scan.
        const stats = await lstat(path).catch(() => null);
        if (stats) found.push({ path, uid: stats.uid });
      }
    }
    return found;
  }
}

/** Empty if the directory does not exist or may not be read. */
async function namesIn(directory: string): Promise<readonly string[]> {
  return readdir(directory).catch(() => []);
}
