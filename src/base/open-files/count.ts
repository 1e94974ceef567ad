import { readdirSync, readFileSync, statSync } from "node:fs";

const LIMITS = "/proc/self/limits";
const DESCRIPTORS = "/proc/self/fd";

/**
 * Maximum number of descriptors that this process may open. Null if the system does not report it (it has no
 * `/proc`). Bun raises the soft limit to the hard one when it starts.
 */
export function openFilesLimit(): number | null {
  try {
    const [, soft] = /^Max open files +(\d+|unlimited)/m.exec(readFileSync(LIMITS, "utf8")) ?? [];
    if (soft === undefined || soft === "unlimited") return null;
    return Number(soft);
  } catch {
    return null;
  }
}

/**
 * The number of open descriptors. Null if the system does not report it. Takes a few microseconds on Linux 6.2 or
 * later, where the directory's size is that number, and needs no descriptor there.
 */
export function countOpenFiles(): number | null {
  try {
    return statSync(DESCRIPTORS).size || readdirSync(DESCRIPTORS).length;
  } catch {
    return null;
  }
}

/**
 * The numbers of all open descriptors. @throws Error if the system does not report them, or no descriptor is left for
 * reading them
 */
export function listOpenFiles(): number[] {
  return readdirSync(DESCRIPTORS).map(Number);
}
