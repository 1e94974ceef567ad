import { lstatSync, mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DirectoryLock, lockDirectory } from "../../../store/lock.ts";

/** Emptied when the machine starts, and writable only by root. Some containers have neither, or cannot write to them. */
const DIRECTORIES = ["/run", "/var/run"];
const NAME = "gatehouse-users";

/**
 * Which users this gateway's programs run as. Every Gatehouse on the machine looks there, so no user belongs to programs of
 * two of them. The system ends a claim with the process that holds it, however that ends.
 */
export class UserClaims {
  readonly #directories: readonly string[];
  readonly #held = new Map<number, DirectoryLock>();
  #directory: string | null = null;

  constructor(directories: readonly string[] = [...DIRECTORIES, tmpdir()]) {
    this.#directories = directories;
  }

  /**
   * @returns false if the user is claimed, by this gateway or another one
   * @throws Error if claims cannot be made on this machine
   */
  claim(uid: number): boolean {
    if (this.#held.has(uid)) return false;
    const path = join(this.#open(), String(uid));
    mkdirSync(path, { recursive: true, mode: 0o700 });
    const lock = lockDirectory(path);
    if (lock) this.#held.set(uid, lock);
    return lock !== null;
  }

  release(uid: number): void {
    this.#held.get(uid)?.release();
    this.#held.delete(uid);
  }

  #open(): string {
    this.#directory ??= this.#directories.map(claimsIn).find((path) => path !== null) ?? null;
    if (this.#directory) return this.#directory;
    throw new Error(`none of ${this.#directories.join(", ")} can hold the claims of users`);
  }
}

/** Null if it cannot be used, because others could take its place or change it. */
function claimsIn(parent: string): string | null {
  const path = join(parent, NAME);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) return null;
  }
  const stats = lstatSync(path, { throwIfNoEntry: false });
  const isOwn = stats?.isDirectory() === true && stats.uid === process.geteuid?.();
  return isOwn && (stats.mode & 0o022) === 0 ? path : null;
}
