import { createHash } from "node:crypto";
import { chmodSync, chownSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, rmdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * Home directories of programs that run as users without one. They are outside the data directory, each readable only by its
 * program, and removed when it has ended. Those that a killed process left are removed before the first one is made: the lock on
 * the data directory ensures that their programs' gateway is gone.
 */
export class ProgramHomes {
  readonly #parent: string;
  #swept: Promise<void> | undefined;

  /** @param dataDir tells this gateway's directories from those of others on the machine */
  constructor(dataDir: string, temporary: string = tmpdir()) {
    const key = createHash("sha256").update(dataDir).digest("hex").slice(0, 16);
    this.#parent = join(temporary, `gatehouse-programs-${key}`);
  }

  /** @throws Error if another user made the parent directory, or it cannot be made */
  async make(uid: number, gid: number): Promise<string> {
    this.#swept ??= this.#sweep();
    await this.#swept;
    this.#prepare();
    const home = mkdtempSync(join(this.#parent, "home-"));
    chownSync(home, uid, gid);
    return home;
  }

  /** The parent goes with the last of them. */
  async remove(home: string): Promise<void> {
    await rm(home, { recursive: true, force: true });
    try {
      rmdirSync(this.#parent);
    } catch (error) {
      if (!hasCode(error, "ENOTEMPTY") && !hasCode(error, "ENOENT")) throw error;
    }
  }

  async #sweep(): Promise<void> {
    this.#prepare();
    for (const name of readdirSync(this.#parent)) {
      await rm(join(this.#parent, name), { recursive: true, force: true });
    }
  }

  #prepare(): void {
    mkdirSync(this.#parent, { recursive: true, mode: 0o711 });
    // Names in a directory that everybody writes to can be taken by anybody.
    const found = lstatSync(this.#parent);
    if (!found.isDirectory() || found.uid !== process.geteuid?.()) {
      throw new Error(`${this.#parent} is not a directory of the server's user; remove it`);
    }
    // Whatever umask made of it: programs pass through it, and list nothing.
    chmodSync(this.#parent, 0o711);
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
