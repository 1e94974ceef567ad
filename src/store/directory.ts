import { chmodSync, lstatSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { OperatorError } from "../base/errors.ts";

const DATABASE_FILE = "gatehouse.db";
/** The files that Gatehouse writes, except key files: those are refused if others may use them. */
const OWN_FILES = /^(?:gatehouse\.(?:db|lock)(?:-[a-z]+)?|server\.json|admin\.token)$/;

/**
 * Creates the data directory, accessible only to its owner. An existing directory keeps its mode. @throws
 * OperatorError
 */
export function prepareDirectory(directory: string): void {
  try {
    const made = mkdirSync(directory, { recursive: true, mode: 0o700 });
    if (made !== undefined) chmodSync(directory, 0o700);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") {
      throw new OperatorError(
        `${directory} is a file, not a directory`,
        "choose another data directory with --data",
      );
    }
    throw new OperatorError(
      `the data directory ${directory} cannot be created: ${error instanceof Error ? error.message : String(error)}`,
      "choose one that this user can write to, with --data or GATEHOUSE_DATA",
    );
  }
}

/**
 * Whether anyone but the owner may access the directory. It contains a configuration with keys, and everybody's
 * prompts.
 */
export function isOpenToOthers(directory: string): boolean {
  return (statSync(directory).mode & 0o077) !== 0;
}

/**
 * Restricts Gatehouse's own files to their owner. A copied data directory may have files with other modes.
 * @returns the names of files that stay open to others because they belong to another user
 */
export function closeFiles(directory: string): string[] {
  return readdirSync(directory).filter((name) => {
    const path = join(directory, name);
    const stats = OWN_FILES.test(name) ? lstatSync(path, { throwIfNoEntry: false }) : undefined;
    if (!stats?.isFile() || (stats.mode & 0o077) === 0) return false;
    try {
      chmodSync(path, 0o600);
      return false;
    } catch {
      return true;
    }
  });
}

/** Whether there is a file, or a link to one. */
export function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

export function databasePath(directory: string): string {
  return join(directory, DATABASE_FILE);
}
