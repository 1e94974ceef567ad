import { PR_SET_DUMPABLE, prctl } from "../base/prctl.ts";

/**
 * Hides this process's memory and environment (`/proc/<pid>/mem`, `/proc/<pid>/environ`, ptrace, core dumps) from
 * other processes of its user, on Linux. They contain keys and tokens, and unless the server runs as root, programs
 * started by connectors run as the same user. Files stay readable to them: no system call prevents that. Child
 * processes are not affected.
 * @returns whether it succeeded; always false on other systems
 */
export function hideMemory(): boolean {
  return prctl(PR_SET_DUMPABLE, 0n);
}
