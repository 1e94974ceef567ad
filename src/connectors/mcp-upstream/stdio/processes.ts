import { readdirSync, readFileSync, statSync } from "node:fs";

/** Index of `starttime` after the name in `/proc/<pid>/stat`. */
const STARTED_AT = 19;

/** A process on this machine. */
export interface ProcessStatus {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  /** In clock ticks since the system started. Distinguishes a process from an earlier one with the same id. */
  readonly startedAt: number;
}

/** The ids in `/proc`; null if processes are not visible (another system, or a jail without `/proc`). */
function listPids(): readonly number[] | null {
  try {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map(Number);
  } catch {
    return null;
  }
}

/**
 * The processes running now; null if they are not visible. A process that has ended is not included, although it may
 * respond to signals until its parent collects it: the first process of a container often never does.
 */
export function runningProcesses(): readonly ProcessStatus[] | null {
  return listPids()?.flatMap((pid) => statusOf(pid) ?? []) ?? null;
}

/** The ids of the processes that run as a user; empty if they are not visible. */
export function processesOf(uid: number): readonly number[] {
  return (listPids() ?? []).filter((pid) => userOf(pid) === uid && statusOf(pid) !== null);
}

/** The users that processes run as now; empty if they are not visible. */
export function runningUsers(): ReadonlySet<number> {
  const uids = new Set<number>();
  for (const pid of listPids() ?? []) {
    const uid = userOf(pid);
    if (uid !== null && !uids.has(uid) && statusOf(pid) !== null) uids.add(uid);
  }
  return uids;
}

/** Null if the process has ended. */
function statusOf(pid: number): ProcessStatus | null {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    return null;
  }
  // `pid (name) state ppid pgrp …`; a name can contain anything, including parentheses (proc_pid_stat(5)).
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [state, parent, group] = fields;
  if (state === "Z" || state === "X") return null;
  return { pid, parent: Number(parent), group: Number(group), startedAt: Number(fields[STARTED_AT]) };
}

/** The user that a process runs as, even if the process hides its memory; null if it has ended. */
function userOf(pid: number): number | null {
  try {
    return statSync(`/proc/${pid}`).uid;
  } catch {
    return null;
  }
}
