import { createHash } from "node:crypto";
import { chmodSync, chownSync, lstatSync, mkdtempSync, readdirSync, rmdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeAs } from "./run-as.ts";

/** Name prefix of the directories that hold homes, for every Gatehouse on the machine. */
const PREFIX = "gatehouse-programs-";

/** A home that a killed gateway process left. */
export interface LeftHome {
  readonly path: string;
  readonly uid: number;
}

/**
 * Home directories of programs whose users have none. They are outside the data directory, each readable only by its
 * program, and removed when the program has ended. Their parent directory stays until the gateway stops, so that no
 * other user can take its name first.
 */
export class ProgramHomes {
  readonly #temporary: string;
  readonly #prefix: string;
  #parent: string | null = null;

  /** @param dataDir distinguishes this gateway's directories from those of others on the machine */
  constructor(dataDir: string, temporary: string = tmpdir()) {
    this.#temporary = temporary;
    this.#prefix = PREFIX + createHash("sha256").update(dataDir).digest("hex").slice(0, 16);
  }

  /** @throws Error if it cannot be created */
  make(uid: number, gid: number): string {
    const home = mkdtempSync(join(this.#openParent(), "home-"));
    chownSync(home, uid, gid);
    return home;
  }

  /** Does nothing if it does not exist. @throws Error if something in it cannot be removed */
  async remove(home: string): Promise<void> {
    const owner = lstatSync(home, { throwIfNoEntry: false });
    if (!owner) return;
    await removeAs(owner, [home]);
    // Its owner may not write to the directory that holds it.
    if (lstatSync(home, { throwIfNoEntry: false })) rmdirSync(home);
  }

  /** The users that have homes, including those of other gateways. */
  owners(): ReadonlySet<number> {
    return new Set(this.#homes(PREFIX).map(({ uid }) => uid));
  }

  /**
   * Homes left by an earlier process of this gateway. MUST be called before the first home is made, and while the
   * data directory is locked.
   */
  left(): readonly LeftHome[] {
    return this.#homes(this.#prefix);
  }

  /** Removes this gateway's directories that no longer hold a home. */
  close(): void {
    for (const parent of this.#parents(this.#prefix)) {
      try {
        rmdirSync(parent);
      } catch (error) {
        if (!hasCode(error, "ENOTEMPTY") && !hasCode(error, "ENOENT")) throw error;
      }
    }
    this.#parent = null;
  }

  #openParent(): string {
    if (this.#parent === null || !isOwnDirectory(this.#parent)) {
      this.#parent = mkdtempSync(join(this.#temporary, `${this.#prefix}-`));
      // Programs may pass through it, but not list it.
      chmodSync(this.#parent, 0o711);
    }
    return this.#parent;
  }

  #homes(prefix: string): LeftHome[] {
    return this.#parents(prefix).flatMap((parent) =>
      namesIn(parent).flatMap((name) => {
        const path = join(parent, name);
        const stats = lstatSync(path, { throwIfNoEntry: false });
        return stats ? [{ path, uid: stats.uid }] : [];
      }),
    );
  }

  /** Anyone can create a directory with such a name, so only those owned by the server's user count. */
  #parents(prefix: string): string[] {
    return namesIn(this.#temporary)
      .filter((name) => name.startsWith(prefix))
      .map((name) => join(this.#temporary, name))
      .filter(isOwnDirectory);
  }
}

function isOwnDirectory(path: string): boolean {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  return stats?.isDirectory() === true && stats.uid === process.geteuid?.();
}

/** Empty if the directory has been removed since it was found. */
function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    if (hasCode(error, "ENOENT") || hasCode(error, "ENOTDIR")) return [];
    throw error;
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
