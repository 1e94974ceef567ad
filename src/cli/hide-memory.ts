import { PR_SET_DUMPABLE, prctl } from "../base/prctl.ts";

/**
 * Closes this process's memory and environment (`/proc/<pid>/mem`, `/proc/<pid>/environ`, ptrace, core dumps) to other processes of
 * its own user, on Linux. They hold keys and tokens, and programs that connectors start run as that user unless it is root. Files
 * stay readable to them: no system call changes that. Children are not affected.
 * @returns whether it did; always false on other systems
 */
export function hideMemory(): boolean {
  return prctl(PR_SET_DUMPABLE, 0n);
}
