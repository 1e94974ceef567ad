import type { Stats } from "node:fs";
import { lstat, readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeAs } from "./run-as.ts";

/** Directories in which every user of a machine may create files. Some systems lack some of them. */
const SHARED_DIRECTORIES = ["/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock"];
const WRITABLE_BY_ALL = 0o002;

interface FileEntry {
  readonly path: string;
  readonly stats: Stats;
}

/**
 * Files that programs leave in shared directories, and in directories inside them that every user may write to, where a
 * later program would trust files of its own user.
 */
export class SharedFiles {
  readonly #directories: readonly string[];

  constructor(directories: readonly string[] = [...SHARED_DIRECTORIES, tmpdir()]) {
    this.#directories = [...new Set(directories)];
  }

  /** The users that own an entry of a shared directory. */
  async owners(): Promise<ReadonlySet<number>> {
    const owners = new Set<number>();
    for await (const { stats } of this.#entries()) owners.add(stats.uid);
    return owners;
  }

  /**
   * Removes a user's entries there. MUST be called only for a program's user, when none of its processes runs.
   * @throws Error if any remain
   */
  async removeOf(owner: number): Promise<void> {
    const left = await this.#entriesOf(owner);
    if (left.length === 0) return;
    await removeAs({ uid: owner, gid: owner }, left);
    const [remaining] = await this.#entriesOf(owner);
    if (remaining !== undefined) throw new Error(`${remaining} of user ${owner} cannot be removed`);
  }

  async #entriesOf(owner: number): Promise<readonly string[]> {
    const paths: string[] = [];
    for await (const { path, stats } of this.#entries()) if (stats.uid === owner) paths.push(path);
    return paths;
  }

  async *#entries(): AsyncGenerator<FileEntry> {
    const waiting = [...this.#directories];
    for (let directory = waiting.pop(); directory !== undefined; directory = waiting.pop()) {
      for (const name of await namesIn(directory)) {
        const path = join(directory, name);
        // Other users may add and remove entries during the scan.
        const stats = await lstat(path).catch(() => null);
        if (!stats) continue;
        if (stats.isDirectory() && (stats.mode & WRITABLE_BY_ALL) !== 0) waiting.push(path);
        yield { path, stats };
      }
    }
  }
}

/** Empty if the directory does not exist or may not be read. */
async function namesIn(directory: string): Promise<readonly string[]> {
  return readdir(directory).catch(() => []);
}
