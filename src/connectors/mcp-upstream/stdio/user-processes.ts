import { type Clock, pause } from "../../../base/clock.ts";
import { processesOf } from "./processes.ts";
import { runAs } from "./run-as.ts";

const POLL_MS = 25;
/**
 * Maximum number of attempts, because a program may start processes as fast as they are killed. All of them take
 * about 2.5 s, if no helper is held up.
 */
const MOST_ROUNDS = 100;
/** How long one helper may take. The user's own processes can stop it. */
const HELPER_MS = 500;
/** `kill -1` reaches every process that the shell's user may signal: as root, every process on the machine. */
const KILL_ALL = '[ "$(id -u)" = "$1" ] || exit 1; kill -9 -1; exit 0';
const NEVER = new AbortController().signal;

/**
 * Kills every process of a user, whatever its group, session or parent. A list of processes misses one that forks all the time
 * while its parent ends, so a helper that runs as the user kills all of them in one system call.
 * @param uid MUST be a user that only one connector's programs run as, with a group of the same number
 * @returns whether all of them have ended
 */
export async function killProcessesOf(uid: number, clock: Clock): Promise<boolean> {
  let hasKilledAll = false;
  let emptyLooks = 0;
  for (let round = 0; round < MOST_ROUNDS; round++) {
    if (!hasKilledAll || emptyLooks === 0) {
      hasKilledAll =
        (await runAs({ uid, gid: uid }, ["/bin/sh", "-c", KILL_ALL, "sh", String(uid)], HELPER_MS)) === 0;
    }
    const pids = processesOf(uid);
    for (const pid of pids) kill(pid);
    emptyLooks = hasKilledAll && pids.length === 0 ? emptyLooks + 1 : 0;
    if (emptyLooks === 2) return true;
    await pause(POLL_MS, clock, NEVER);
  }
  return false;
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    // ESRCH: it has just ended.
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}
