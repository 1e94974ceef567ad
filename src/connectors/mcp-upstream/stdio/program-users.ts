import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../../base/clock.ts";
import { OperatorError } from "../../../base/errors.ts";
import type { Log } from "../../../base/log.ts";
import { PR_SET_NO_NEW_PRIVS, prctl } from "../../../base/prctl.ts";
import { ConnectorError } from "../../source.ts";
import { KernelObjects } from "./kernel-objects.ts";
import { refuseMessageQueues } from "./message-queues.ts";
import { OwnUsers } from "./own-users.ts";
import { type SystemUser, systemUsers } from "./passwd.ts";
import { ProgramCleaner } from "./program-cleaner.ts";
import { ProgramHomes } from "./program-homes.ts";
import { SharedFiles } from "./shared-files.ts";

/** The user that a program runs as. It is in no group except `gid`. */
export interface ProgramUser {
  readonly uid: number;
  readonly gid: number;
  /** An absolute path: the program's HOME and working directory. */
  readonly home: string;
  /**
   * Called when the program has ended. Ends and removes what remains of it, if the user belongs only to that program.
   * @throws Error if something remains
   */
  release(): Promise<void>;
}

/** Gives the programs of one connector a user that cannot read the server's files, memory or environment. */
export interface ProgramUsers {
  /** @throws ConnectorError `unavailable` if no user can be given; then nothing may be started */
  take(): Promise<ProgramUser>;
}

/** The users of all connectors' programs. */
export interface ProgramUserPool {
  /** @param connector an id that no other connector has or had */
  usersOf(connector: number): ProgramUsers;
  /** Called when all programs have ended. */
  close(): Promise<void>;
}

export interface ProgramUserParts {
  readonly dataDir: string;
  /** `connectors.stdio_user`. */
  readonly stdioUser: string | undefined;
  readonly clock: Clock;
  readonly log: Log;
  /** The server's own user. Default: the process's. */
  readonly ownUid?: number | undefined;
}

/**
 * The users that programs run as; null if they run as the server's own user, since only root can change users. The
 * data directory MUST be locked. After this call, nothing that this process starts gains rights through a setuid or
 * setgid file or a file's capabilities (`no_new_privs` of Linux): otherwise a program could leave such a file for a
 * later one, and act as its user.
 * @throws OperatorError if `connectors.stdio_user` cannot be used
 */
export function openProgramUsers(parts: ProgramUserParts): ProgramUserPool | null {
  const { dataDir, stdioUser, clock, log, ownUid = process.geteuid?.() } = parts;
  const named = stdioUser === undefined ? undefined : findUser(stdioUser);
  if (ownUid !== 0) {
    if (named === undefined || named.uid === ownUid) return null;
    throw unusable(named.name, "and only a server that runs as root can start programs as another user");
  }
  if (named?.uid === 0) throw unusable(named.name, "who could read all files of the server");
  // Irrevocable, and inherited by each child. Only Linux has it.
  const isSafe = prctl(PR_SET_NO_NEW_PRIVS, 1n) || process.platform !== "linux";
  const homes = new ProgramHomes(dataDir);
  const shared = new SharedFiles();
  const kernel = new KernelObjects();
  const cleaner = new ProgramCleaner({ homes, shared, kernel, clock, log });
  const left = { homes, shared, kernel };
  const users = named ? new NamedUser(named, homes) : new OwnUsers({ dataDir, cleaner, ...left });
  if (!named) refuseMessageQueues(log);
  const cleared = cleaner.clearLeft();
  async function take(connector: number): Promise<ProgramUser> {
    if (!isSafe) throw new ConnectorError("unavailable", GAINS_RIGHTS);
    await cleared;
    const user = await users.take(connector).catch((error: unknown) => {
      throw asConnectorError(error);
    });
    const open = readableFile(dataDir, user);
    if (open === null) return user;
    await user.release();
    throw new ConnectorError(
      "unavailable",
      `No program is started, because its user could read ${open} in the data directory. Make that directory readable only by the server's user (chmod 700).`,
    );
  }
  return {
    usersOf: (connector) => ({ take: () => take(connector) }),
    async close() {
      await cleared;
      homes.close();
    },
  };
}

const GAINS_RIGHTS =
  "No program is started: the system does not allow this process to set no_new_privs, so programs could gain the rights of other users.";

/** A numeric user needs no entry in `/etc/passwd`; without one, its group has the same number and it has no home. */
function findUser(text: string): Omit<SystemUser, "home"> & { readonly home?: string } {
  const uid = /^\d{1,10}$/.test(text) ? Number(text) : undefined;
  const found = systemUsers().find((user) => (uid === undefined ? user.name === text : user.uid === uid));
  if (found) return found;
  if (uid !== undefined) return { name: text, uid, gid: uid };
  throw unusable(text, "who is not listed in /etc/passwd");
}

function unusable(name: string, why: string): OperatorError {
  return new OperatorError(
    `connectors.stdio_user is ${name}, ${why}`,
    "name an unprivileged user of this machine, or leave connectors.stdio_user out",
    2,
  );
}

/** File system errors name what could not be created. They contain no secrets. */
function asConnectorError(error: unknown): ConnectorError {
  if (error instanceof ConnectorError) return error;
  const why = error instanceof Error ? error.message : String(error);
  return new ConnectorError(
    "unavailable",
    `No program is started: its home directory cannot be created: ${why}.`,
  );
}

/**
 * The name of an entry of the data directory that the user could open or enter; null if there is none. A data
 * directory that others may list is accepted: container volumes often are, and only Gatehouse's own user can read
 * what it writes there.
 */
function readableFile(directory: string, user: ProgramUser): string | null {
  if (!isOpenTo(directory, user)) return null;
  return readdirSync(directory).find((name) => isOpenTo(join(directory, name), user)) ?? null;
}

/** Whether a file's or directory's mode lets the user read or pass through it. */
function isOpenTo(path: string, { uid, gid }: ProgramUser): boolean {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (!stats) return false;
  const bits = stats.uid === uid ? 0o700 : stats.gid === gid ? 0o070 : 0o007;
  return (stats.mode & bits) !== 0;
}

/**
 * One user for all programs, as named by `connectors.stdio_user`. Programs that share it are not protected from each other.
 * Other processes may run as it, so its processes and files are never removed.
 */
class NamedUser {
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
    const made = this.#homes.make(uid, gid);
    return { uid, gid, home: made, release: () => this.#homes.remove(made) };
  }
}
