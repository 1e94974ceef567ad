import { createHash } from "node:crypto";
import { ConnectorError } from "../../source.ts";
import { systemUsers } from "./passwd.ts";
import { runningUsers } from "./processes.ts";
import { FIRST_UID, LAST_UID, type ProgramCleaner } from "./program-cleaner.ts";
import type { ProgramHomes } from "./program-homes.ts";
import type { ProgramUser } from "./program-users.ts";
import type { SharedFiles } from "./shared-files.ts";

const COUNT = LAST_UID - FIRST_UID + 1;

export interface OwnUsersParts {
  readonly dataDir: string;
  readonly homes: ProgramHomes;
  readonly cleaner: ProgramCleaner;
  readonly shared: SharedFiles;
}

/**
 * Gives each connector a user of its own, which has no process and no file before its program starts or after it has
 * ended. Users follow the connectors' ids, which are assigned in order of creation: a connector keeps its user over
 * restarts, and another connector gets the same user only after 478 more have been created.
 */
export class OwnUsers {
  readonly #parts: OwnUsersParts;
  readonly #taken = new Set<number>();
  /** Gateways on one machine start at different numbers. */
  readonly #offset: number;

  constructor(parts: OwnUsersParts) {
    this.#parts = parts;
    this.#offset = createHash("sha256").update(parts.dataDir).digest().readUInt32BE(0);
  }

  /** @param connector id of the connector that the program belongs to */
  async take(connector: number): Promise<ProgramUser> {
    const uid = await this.#takeFree(connector);
    try {
      const home = this.#parts.homes.make(uid, uid);
      return { uid, gid: uid, home, release: () => this.#release(uid, home) };
    } catch (error) {
      this.#taken.delete(uid);
      throw error;
    }
  }

  async #takeFree(connector: number): Promise<number> {
    const inUse = new Set([...systemUsers().map(({ uid }) => uid), ...this.#parts.homes.owners()]);
    // Files that an earlier program left in a shared directory could trap the next program of the same user.
    for (const uid of await this.#parts.shared.owners()) inUse.add(uid);
    // Nothing is awaited from here on, so no other program is given the same user.
    for (const uid of runningUsers()) inUse.add(uid);
    for (let tried = 0; tried < COUNT; tried++) {
      const uid = FIRST_UID + ((this.#offset + connector + tried) % COUNT);
      if (this.#taken.has(uid) || inUse.has(uid)) continue;
      this.#taken.add(uid);
      return uid;
    }
    throw new ConnectorError(
      "unavailable",
      `No program is started: all ${COUNT} users for programs are in use.`,
    );
  }

  /**
   * @throws Error if processes or files of the user remain; then it is not used again before the next start of the
   *   server
   */
  async #release(uid: number, home: string): Promise<void> {
    await this.#parts.cleaner.clear(uid, home);
    this.#taken.delete(uid);
  }
}
