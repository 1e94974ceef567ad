import { chmodSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { OperatorError } from "../base/errors.ts";

export const DATABASE_FILE = "gatehouse.db";

/** Makes the data directory readable by its owner alone. @throws OperatorError when it cannot be made. */
export function prepareDirectory(directory: string): void {
  try {
    const made = mkdirSync(directory, { recursive: true, mode: 0o700 });
    if (made !== undefined) chmodSync(directory, 0o700);
  } catch (error) {
    throw new OperatorError(
      `the data directory ${directory} cannot be made: ${error instanceof Error ? error.message : String(error)}`,
      "name one that this user may write with --data or GATEHOUSE_DATA",
    );
  }
}

export function databasePath(directory: string): string {
  return join(directory, DATABASE_FILE);
}
