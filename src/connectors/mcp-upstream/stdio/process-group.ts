import { type Clock, pause } from "../../../base/clock.ts";
import { type ProcessStatus, runningProcesses } from "./processes.ts";

/** How long a group is given after each step of its ending. */
const STEP_MS = 2_000;
const POLL_MS = 25;
const NEVER = new AbortController().signal;

/**
 * Ends a process, its group, and its descendants that have left the group: `npx` starts the server as a child of its own, and
 * that may start a session of its own. Two seconds to end by itself after its input was closed; then SIGTERM and two more; then
 * SIGKILL. Never throws. A descendant outside the group is found by its parents, so one whose parent ended earlier is missed.
 * @param leader pid of the group's first process, which MUST have been started detached
 * @returns whether all of it has ended; a process that runs as another user by then may not have
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

/** Whether a process of the group still runs. One that has ended and was not collected yet does not. */
export function groupRuns(leader: number, processes = runningProcesses()): boolean {
  if (!sendSignal(-leader, 0)) return false;
  // Without a list of processes, the answer to the signal is all there is.
  return processes === null || processes.some(({ group }) => group === leader);
}

export function signalGroup(leader: number, signal: NodeJS.Signals): void {
  sendSignal(-leader, signal);
}

/** @returns whether there is such a process or group, also if it runs as a user that we may not signal */
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

  /** @param processes all that run now */
  update(processes: readonly ProcessStatus[]): void {
    const children = Map.groupBy(processes, ({ parent }) => parent);
    // A descendant that was seen before still is one, though its parents may have ended.
    const family = new Set(processes.filter((each) => this.#isMember(each) || this.#wasSeen(each)));
    // A set that grows while it is read: children of children are found as well.
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
