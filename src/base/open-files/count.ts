import { readdirSync, readFileSync, statSync } from "node:fs";

const LIMITS = "/proc/self/limits";
const DESCRIPTORS = "/proc/self/fd";

/**
 * How many descriptors this process may have open, or null if the system does not say (it has no `/proc`). Bun raises the
 * soft limit to the hard one at its start.
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
 * How many descriptors are open now, or null if the system does not say. Takes some microseconds on Linux 6.2 or later,
 * where the directory's size is their number, and needs no descriptor there.
 */
export function countOpenFiles(): number | null {
  try {
    return statSync(DESCRIPTORS).size || readdirSync(DESCRIPTORS).length;
  } catch {
    return null;
  }
}

/** The numbers of all open descriptors. @throws Error if the system does not say, or no descriptor is left to look with */
export function listOpenFiles(): number[] {
  return readdirSync(DESCRIPTORS).map(Number);
}
