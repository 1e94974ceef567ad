import { readdirSync, statSync } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { OperatorError } from "../../../base/errors.ts";
import { ConnectorError } from "../../source.ts";
import { type SystemUser, systemUsers } from "./passwd.ts";
import { ProgramHomes } from "./program-home.ts";

/** Who a program runs as. It has no other group than `gid`. */
export interface ProgramUser {
  readonly uid: number;
  readonly gid: number;
  /** An absolute path: its HOME, and where it is started. */
  readonly home: string;
  /** Called when the program has ended. */
  release(): Promise<void>;
}

/** Gives each program a user that cannot read the server's files, memory or environment. */
export interface ProgramUsers {
  /** @throws ConnectorError `unavailable` if none can be given; then nothing may be started */
  take(): Promise<ProgramUser>;
}

export interface ProgramUserParts {
  readonly dataDir: string;
  /** `connectors.stdio_user`. */
  readonly stdioUser: string | undefined;
  /** The server's own user. Default: the process's. */
  readonly ownUid?: number | undefined;
}

/**
 * Users without an entry in `/etc/passwd`, for one program each, so that programs cannot reach each other either. systemd and
 * Debian assign none of these numbers by themselves, and rootless containers map them.
 */
const FIRST_UID = 60_706;
const LAST_UID = 61_183;

/**
 * The users that programs run as; null if they run as the server's own user, which only root can change.
 * @throws OperatorError if `connectors.stdio_user` cannot be
 */
export function openProgramUsers(parts: ProgramUserParts): ProgramUsers | null {
  const { dataDir, stdioUser, ownUid = process.geteuid?.() } = parts;
  const named = stdioUser === undefined ? undefined : findUser(stdioUser);
  if (ownUid !== 0) {
    if (named === undefined || named.uid === ownUid) return null;
    throw unusable(named.name, "and only a server that runs as root can start programs as another user");
  }
  const homes = new ProgramHomes(dataDir);
  if (named?.uid === 0) throw unusable(named.name, "which could read everything here");
  const users = named ? new NamedUser(named, homes) : new OwnUsers(homes);
  return {
    async take() {
      const user = await users.take().catch((error: unknown) => {
        throw asConnectorError(error);
      });
      const open = readableFile(dataDir, user);
      if (open === null) return user;
      await user.release();
      throw new ConnectorError(
        "unavailable",
        `No program is started while its user could read ${open} in the data directory. Let only the server's user read that directory: chmod 700.`,
      );
    },
  };
}

/** A number needs no entry; without one it has a group of its own, and no home. */
function findUser(text: string): Omit<SystemUser, "home"> & { readonly home?: string } {
  const uid = /^\d{1,10}$/.test(text) ? Number(text) : undefined;
  const found = systemUsers().find((user) => (uid === undefined ? user.name === text : user.uid === uid));
  if (found) return found;
  if (uid !== undefined) return { name: text, uid, gid: uid };
  throw unusable(text, "which /etc/passwd does not list");
}

function unusable(name: string, why: string): OperatorError {
  return new OperatorError(
    `connectors.stdio_user is ${name}, ${why}`,
    "name an unprivileged user of this machine, or leave connectors.stdio_user out",
    2,
  );
}

/** The file system's errors name what could not be made; nothing of them is secret. */
function asConnectorError(error: unknown): ConnectorError {
  if (error instanceof ConnectorError) return error;
  const why = error instanceof Error ? error.message : String(error);
  return new ConnectorError(
    "unavailable",
    `No program is started: its home directory cannot be made: ${why}.`,
  );
}

/**
 * The name of an entry of the data directory that the user could open or enter; null if there is none. A directory that others may
 * list is not refused for that: volumes of containers often are, and what Gatehouse writes into them is its own user's.
 */
function readableFile(directory: string, user: ProgramUser): string | null {
  if (!isOpenTo(directory, user)) return null;
  return readdirSync(directory).find((name) => isOpenTo(join(directory, name), user)) ?? null;
}

/** Whether the mode of a file or directory lets the user read or pass through it. */
function isOpenTo(path: string, { uid, gid }: ProgramUser): boolean {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (!stats) return false;
  const bits = stats.uid === uid ? 0o700 : stats.gid === gid ? 0o070 : 0o007;
  return (stats.mode & bits) !== 0;
}

/** One user for all programs, as `connectors.stdio_user` names it. */
class NamedUser implements ProgramUsers {
  readonly #user: ReturnType<typeof findUser>;
  readonly #homes: ProgramHomes;

  constructor(user: ReturnType<typeof findUser>, homes: ProgramHomes) {
    this.#user = user;
    this.#homes = homes;
  }

  async take(): Promise<ProgramUser> {
    const { uid, gid, home } = this.#user;
    // System users such as nobody have homes that do not exist.
    const hasHome = home !== undefined && statSync(home, { throwIfNoEntry: false })?.isDirectory();
    if (hasHome) return { uid, gid, home, release: async () => {} };
    const made = await this.#homes.make(uid, gid);
    return { uid, gid, home: made, release: () => this.#homes.remove(made) };
  }
}

/** A user for each program. None is given twice before all others were, nor while any process of the machine runs as it. */
class OwnUsers implements ProgramUsers {
  readonly #homes: ProgramHomes;
  readonly #taken = new Set<number>();
  #next = FIRST_UID;

  constructor(homes: ProgramHomes) {
    this.#homes = homes;
  }

  async take(): Promise<ProgramUser> {
    const uid = await this.#takeFree();
    try {
      const home = await this.#homes.make(uid, uid);
      const release = async (): Promise<void> => {
        try {
          await this.#homes.remove(home);
        } finally {
          this.#taken.delete(uid);
        }
      };
      return { uid, gid: uid, home, release };
    } catch (error) {
      this.#taken.delete(uid);
      throw error;
    }
  }

  async #takeFree(): Promise<number> {
    const listed = new Set(systemUsers().map((user) => user.uid));
    let running: ReadonlySet<number> = new Set();
    for (let tried = FIRST_UID; tried <= LAST_UID; tried++) {
      const uid = this.#next;
      this.#next = uid === LAST_UID ? FIRST_UID : uid + 1;
      if (this.#taken.has(uid) || listed.has(uid) || running.has(uid)) continue;
      // Taken before the processes are looked at, so that no other program is given this user while that takes.
      this.#taken.add(uid);
      running = await uidsOfProcesses();
      if (!running.has(uid)) return uid;
      this.#taken.delete(uid);
    }
    throw new ConnectorError(
      "unavailable",
      `No program is started: ${LAST_UID - FIRST_UID + 1} users for programs are all in use.`,
    );
  }
}

/** Users that a process runs as now: what a program left behind must not meet the next one. */
async function uidsOfProcesses(): Promise<ReadonlySet<number>> {
  const uids = new Set<number>();
  // A jail may have no /proc, and other systems have none: then only our own are known.
  const names = await readdir("/proc").catch(() => []);
  for (const name of names) {
    if (!/^\d+$/.test(name)) continue;
    // It may have ended since it was listed.
    const stats = await stat(`/proc/${name}`).catch(() => null);
    if (stats) uids.add(stats.uid);
  }
  return uids;
}
