import { type Clock, pause } from "../../../base/clock.ts";
import { processesOf } from "./processes.ts";

const POLL_MS = 25;
/** A program may start processes as fast as they are killed. About 2.5 s. */
const MOST_ROUNDS = 100;
const NEVER = new AbortController().signal;

/**
 * Kills every process of a user, whatever its group, session or parent.
 * @param uid MUST be a user that only one connector's programs run as
 * @returns whether all of them have ended
 */
export async function killProcessesOf(uid: number, clock: Clock): Promise<boolean> {
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const pids = processesOf(uid);
    if (pids.length === 0) return true;
    for (const pid of pids) kill(pid);
    await pause(POLL_MS, clock, NEVER);
  }
  return processesOf(uid).length === 0;
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    // ESRCH: it has just ended.
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}
