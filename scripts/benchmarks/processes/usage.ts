/** The operating system's data about a process. Null if this system does not provide it. */
import { readdirSync, readFileSync } from "node:fs";

const MICROS_PER_SECOND = 1_000_000;
/** Fields of proc(5)'s `stat` after the second: utime and stime, and with them cutime and cstime. */
const OWN = [11, 12];
const OWN_AND_ENDED_CHILDREN = [...OWN, 13, 14];
const TICKS_PER_SECOND = Number(read(["getconf", "CLK_TCK"])) || 100;

/** Microseconds of CPU that all threads of the process have used since its start, in steps of one tick (10 ms). */
export function cpuMicros(pid: number): number | null {
  return microsIn(pid, OWN);
}

/** The same of several processes together. */
export function cpuMicrosOf(pids: readonly number[]): number | null {
  return sum(pids.map(cpuMicros));
}

/**
 * The same of a process, its descendants, and those that have ended and were children of one that runs. Only differences
 * mean anything.
 */
export function cpuMicrosOfTree(pid: number): number | null {
  const own = microsIn(pid, OWN_AND_ENDED_CHILDREN);
  // A child may end after it was listed. What it used is in the next answer then.
  return sum([own, ...childrenOf(pid).map((each) => microsIn(each, OWN_AND_ENDED_CHILDREN) ?? 0)]);
}

/** Microseconds of CPU that those threads have used that still run. Finer than `cpuMicros`, for the first moments. */
export function threadMicros(pid: number): number | null {
  const times = readProcFolder(pid, "task").map((thread) => readProc(pid, `task/${thread}/schedstat`));
  // The first field of schedstat (Linux's sched-stats document) is in nanoseconds.
  const nanos = sum(times.map((text) => (text === null ? null : Number(text.split(" ")[0]))));
  return nanos === null || !(nanos > 0) ? null : nanos / 1_000;
}

/** Resident bytes of several processes together. Memory that they share counts once for each. */
export function residentBytesOf(pids: readonly number[]): number | null {
  return sum(pids.map(residentBytes));
}

/** Resident bytes of the process. */
export function residentBytes(pid: number): number | null {
  const status = readProc(pid, "status");
  const kibibytes = Number(
    status === null
      ? read(["ps", "-o", "rss=", "-p", String(pid)])
      : (/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? Number.NaN),
  );
  return Number.isFinite(kibibytes) && kibibytes > 0 ? kibibytes * 1024 : null;
}

/** Resident bytes, of which those that several processes use count in proportion. */
export function proportionalBytes(pid: number): number | null {
  const kibibytes = /^Pss:\s+(\d+) kB/m.exec(readProc(pid, "smaps_rollup") ?? "")?.[1];
  return kibibytes === undefined ? null : Number(kibibytes) * 1024;
}

/** Resident bytes of the process and all its descendants. */
export function residentBytesOfTree(pid: number): number | null {
  return residentBytesOf([pid, ...childrenOf(pid)]);
}

function microsIn(pid: number, columns: readonly number[]): number | null {
  const stat = readProc(pid, "stat");
  if (stat === null) return null;
  // The second field, the name, may contain spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const ticks = columns.reduce((total, column) => total + Number(fields[column]), 0);
  return Number.isFinite(ticks) ? (ticks / TICKS_PER_SECOND) * MICROS_PER_SECOND : null;
}

function sum(values: readonly (number | null)[]): number | null {
  return values.reduce((total, value) => (total === null || value === null ? null : total + value), 0);
}

/** All descendants of a process; none if this system has no `/proc`. */
function childrenOf(pid: number): number[] {
  const threads = readProcFolder(pid, "task").map((thread) => readProc(pid, `task/${thread}/children`) ?? "");
  const children = threads.flatMap((pids) => pids.split(" ").filter((text) => text !== "")).map(Number);
  return children.flatMap((child) => [child, ...childrenOf(child)]);
}

function readProcFolder(pid: number, name: string): string[] {
  try {
    return readdirSync(`/proc/${pid}/${name}`);
  } catch {
    return [];
  }
}

function readProc(pid: number, name: string): string | null {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "utf8");
  } catch {
    return null;
  }
}

function read(command: string[]): string {
  try {
    return Bun.spawnSync(command).stdout.toString().trim();
  } catch {
    return ""; // there is no such program here
  }
}
