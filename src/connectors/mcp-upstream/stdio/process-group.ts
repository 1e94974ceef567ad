import { readdirSync, readFileSync } from "node:fs";
import { type Clock, pause } from "../../../base/clock.ts";

/** How long a group is given after each step of its ending. */
const STEP_MS = 2_000;
const POLL_MS = 25;

/**
 * Ends a process and all that it started, where they stayed in its group: `npx` starts the server as a child of its own.
 * Two seconds to end by itself, its input being closed; then SIGTERM and two more; then SIGKILL. Never throws.
 * @param leader pid of the group's first process, which MUST have been started detached
 * @returns whether all of it has ended; what runs as another user by now may not have
 */
export async function endGroup(leader: number, clock: Clock): Promise<boolean> {
  for (const signal of [undefined, "SIGTERM", "SIGKILL"] as const) {
    if (signal) signalGroup(leader, signal);
    if (await isGone(leader, clock)) return true;
  }
  return false;
}

/** Whether a process of the group still runs. One that has ended and was not collected yet does not. */
export function groupRuns(leader: number): boolean {
  try {
    process.kill(-leader, 0);
  } catch (error) {
    // EPERM: it is there, as another user.
    return hasCode(error, "EPERM");
  }
  return process.platform !== "linux" || membersRun(leader);
}

export function signalGroup(leader: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-leader, signal);
  } catch (error) {
    // ESRCH: it has just ended. EPERM: it runs as another user now, and only its own exit can end it.
    if (!hasCode(error, "ESRCH") && !hasCode(error, "EPERM")) throw error;
  }
}

async function isGone(leader: number, clock: Clock): Promise<boolean> {
  const end = clock.monotonic() + STEP_MS;
  while (groupRuns(leader)) {
    if (clock.monotonic() >= end) return false;
    await pause(POLL_MS, clock, NEVER);
  }
  return true;
}

const NEVER = new AbortController().signal;

/**
 * Where the first process of a container collects nobody, what has ended stays in its group for ever as a zombie, and
 * answers signals.
 */
function membersRun(leader: number): boolean {
  let names: string[];
  try {
    names = readdirSync("/proc");
  } catch {
    // Not to be seen from here (a jail without /proc): the signal's answer stands.
    return true;
  }
  return names.some((name) => /^\d+$/.test(name) && runsIn(leader, name));
}

function runsIn(leader: number, pid: string): boolean {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    // It ended between the listing and the look.
    return false;
  }
  // `pid (name) state ppid pgrp …`; a name may hold anything, also brackets (proc_pid_stat(5)).
  const [state, , group] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(group) === leader && state !== "Z" && state !== "X";
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
