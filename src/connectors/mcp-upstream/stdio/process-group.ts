import { type Clock, pause } from "../../../base/clock.ts";
import { type ProcessStatus, runningProcesses } from "./processes.ts";

/** How long a group has after each step. */
const STEP_MS = 2_000;
const POLL_MS = 25;
const NEVER = new AbortController().signal;

/**
 * Ends a process, its group, and its descendants outside the group: `npx` starts the server as a child, which may
 * start a session of its own. After their input is closed, they have two seconds to end by themselves; then SIGTERM
 * and two more; then SIGKILL. Never throws. Descendants outside the group are found through their parents, so one
 * whose parent ended earlier is missed.
 * @param leader pid of the group's first process, which MUST have been started detached
 * @returns whether everything has ended; a process that changed its user may not have
 */
export async function endGroup(leader: number, clock: Clock): Promise<boolean> {
  const descendants = new Descendants(leader);
  for (const signal of [undefined, "SIGTERM", "SIGKILL"] as const) {
    if (signal) {
      signalGroup(leader, signal);
      descendants.signal(signal);
    }
    if (await isGone(leader, descendants, clock)) return true;
  }
  return false;
}

/** Whether a process of the group still runs. Ended processes that were not yet collected do not count. */
export function groupRuns(leader: number, processes = runningProcesses()): boolean {
  if (!sendSignal(-leader, 0)) return false;
  // Without a process list, only the result of the signal is known.
  return processes === null || processes.some(({ group }) => group === leader);
}

function signalGroup(leader: number, signal: NodeJS.Signals): void {
  sendSignal(-leader, signal);
}

/** @returns whether there is such a process or group, even if it runs as a user that we cannot signal */
function sendSignal(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch (error) {
    if (hasCode(error, "EPERM")) return true;
    if (hasCode(error, "ESRCH")) return false;
    throw error;
  }
}

async function isGone(leader: number, descendants: Descendants, clock: Clock): Promise<boolean> {
  const end = clock.monotonic() + STEP_MS;
  for (;;) {
    const processes = runningProcesses();
    descendants.update(processes ?? []);
    if (!descendants.areRunning && !groupRuns(leader, processes)) return true;
    if (clock.monotonic() >= end) return false;
    await pause(POLL_MS, clock, NEVER);
  }
}

/** The descendants of a group's processes that run outside the group. */
class Descendants {
  readonly #leader: number;
  #outside: readonly ProcessStatus[] = [];

  constructor(leader: number) {
    this.#leader = leader;
  }

  get areRunning(): boolean {
    return this.#outside.length > 0;
  }

  signal(signal: NodeJS.Signals): void {
    for (const { pid } of this.#outside) sendSignal(pid, signal);
  }

  /** @param processes all processes running now */
  update(processes: readonly ProcessStatus[]): void {
    const children = Map.groupBy(processes, ({ parent }) => parent);
    // A process once seen as a descendant remains one, although its parents may have ended.
    const family = new Set(processes.filter((each) => this.#isMember(each) || this.#wasSeen(each)));
    // The set grows while it is iterated, so that descendants at any depth are found.
    for (const { pid } of family) for (const child of children.get(pid) ?? []) family.add(child);
    this.#outside = [...family].filter((each) => !this.#isMember(each));
  }

  #isMember({ group }: ProcessStatus): boolean {
    return group === this.#leader;
  }

  #wasSeen({ pid, startedAt }: ProcessStatus): boolean {
    return this.#outside.some((seen) => seen.pid === pid && seen.startedAt === startedAt);
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
