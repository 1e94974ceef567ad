import { createHash } from "node:crypto";
import { ConnectorError } from "../../source.ts";
import type { KernelObjects } from "./kernel-objects.ts";
import { systemUsers } from "./passwd.ts";
import { runningUsers } from "./processes.ts";
import { FIRST_UID, LAST_UID, type ProgramCleaner } from "./program-cleaner.ts";
import type { ProgramHomes } from "./program-homes.ts";
import type { ProgramUser } from "./program-users.ts";
import type { SharedFiles } from "./shared-files.ts";
import { UserClaims } from "./user-claims.ts";

const COUNT = LAST_UID - FIRST_UID + 1;

export interface OwnUsersParts {
  readonly dataDir: string;
  readonly homes: ProgramHomes;
  readonly cleaner: ProgramCleaner;
  readonly shared: SharedFiles;
  readonly kernel: KernelObjects;
}

/**
 * Gives each connector its own user. No other program of any Gatehouse on the machine runs as that user, and the user
 * owns nothing before its program starts or after it has ended. Users follow the connectors' ids, which are assigned
 * in order of creation, skipping any that are in use. So a connector usually keeps its user across restarts.
 */
export class OwnUsers {
  readonly #parts: OwnUsersParts;
  readonly #claims = new UserClaims();
  /** Gateways on one machine start at different numbers. */
  readonly #offset: number;

  constructor(parts: OwnUsersParts) {
    this.#parts = parts;
    this.#offset = createHash("sha256").update(parts.dataDir).digest().readUInt32BE(0);
  }

  /** @param connector id of the connector that the program belongs to */
  async take(connector: number): Promise<ProgramUser> {
    const uid = await this.#claimFree(connector);
    try {
      const home = this.#parts.homes.make(uid, uid);
      return { uid, gid: uid, home, release: () => this.#release(uid, home) };
    } catch (error) {
      this.#claims.release(uid);
      throw error;
    }
  }

  async #claimFree(connector: number): Promise<number> {
    let inUse = await this.#usersInUse();
    for (let tried = 0; tried < COUNT; tried++) {
      const uid = FIRST_UID + ((this.#offset + connector + tried) % COUNT);
      if (inUse.has(uid) || !this.#claim(uid)) continue;
      // Only the holder's programs leave anything that belongs to a claimed user, and an earlier holder may have been
      // killed just now.
      inUse = await this.#usersInUse();
      if (!inUse.has(uid)) return uid;
      this.#claims.release(uid);
    }
    throw new ConnectorError(
      "unavailable",
      `No program is started: all ${COUNT} users for programs are in use.`,
    );
  }

  #claim(uid: number): boolean {
    try {
      return this.#claims.claim(uid);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new ConnectorError("unavailable", `No program is started: its user cannot be claimed: ${why}.`);
    }
  }

  /** Users that have an entry in `/etc/passwd`, or own a process, a file, a home or a kernel object. */
  async #usersInUse(): Promise<ReadonlySet<number>> {
    const { homes, kernel, shared } = this.#parts;
    return new Set([
      ...systemUsers().map(({ uid }) => uid),
      ...(await shared.owners()),
      ...homes.owners(),
      ...kernel.owners(),
      ...runningUsers(),
    ]);
  }

  /**
   * @throws Error if processes, files or kernel objects of the user remain; then it is not used again before the next
   *   start of the server
   */
  async #release(uid: number, home: string): Promise<void> {
    await this.#parts.cleaner.clear(uid, home);
    this.#claims.release(uid);
  }
}
