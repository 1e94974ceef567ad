import { chmodSync, mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { OperatorError } from "../base/errors.ts";

const DATABASE_FILE = "gatehouse.db";

/** Makes the data directory, readable by its owner alone; one that exists keeps its mode. @throws OperatorError */
export function prepareDirectory(directory: string): void {
  try {
    const made = mkdirSync(directory, { recursive: true, mode: 0o700 });
    if (made !== undefined) chmodSync(directory, 0o700);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") {
      throw new OperatorError(
        `${directory} is a file, not a directory`,
        "name another data directory with --data",
      );
    }
    throw new OperatorError(
      `the data directory ${directory} cannot be made: ${error instanceof Error ? error.message : String(error)}`,
      "name one that this user may write with --data or GATEHOUSE_DATA",
    );
  }
}

/** Whether others than its owner may look into it: it holds a configuration with keys, and everybody's prompts. */
export function isOpenToOthers(directory: string): boolean {
  return (statSync(directory).mode & 0o077) !== 0;
}

export function databasePath(directory: string): string {
  return join(directory, DATABASE_FILE);
}
