import { readFileSync } from "node:fs";

/** What a process does in a measurement: it is the server under test, or it makes or answers the load. */
export type Role = "server" | "load";
export type Cores = Readonly<Record<Role, number>>;

/**
 * One core for the server under test, and another for the load generator and the upstream. Null if this system has no
 * taskset or this process may use only one core. Larger machines use two cores too, so that figures can be compared.
 */
export function separateCores(): Cores | null {
  const [server, load] = allowedCores();
  return server === undefined || load === undefined || Bun.which("taskset") === null
    ? null
    : { server, load };
}

/** The command, limited to one core if there are any to choose from. The process keeps its id. */
export function onCore(cores: Cores | null, role: Role, command: readonly string[]): string[] {
  const taskset = cores === null ? null : Bun.which("taskset");
  return cores === null || taskset === null
    ? [...command]
    : [taskset, "--cpu-list", String(cores[role]), ...command];
}

/** The cores that this process may use, such as `0-1,4` in proc(5); none if the system does not say. */
function allowedCores(): number[] {
  let status: string;
  try {
    status = readFileSync("/proc/self/status", "utf8");
  } catch {
    return [];
  }
  const list = /^Cpus_allowed_list:\s+(\S+)$/m.exec(status)?.[1] ?? "";
  return list.split(",").flatMap((range) => {
    const [first = Number.NaN, last = first] = range.split("-").map(Number);
    return Number.isInteger(first) && Number.isInteger(last)
      ? Array.from({ length: last - first + 1 }, (_, index) => first + index)
      : [];
  });
}
