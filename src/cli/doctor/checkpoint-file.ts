import { accessSync, constants, statSync } from "node:fs";
import { dirname } from "node:path";
import { type Finding, fail, ok } from "./finding.ts";

/** The file outside of the data directory to which checkpoints are appended. */
export function checkCheckpointFile(path: string | undefined): Finding[] {
  if (path === undefined) return [];
  const exists = statSync(path, { throwIfNoEntry: false }) !== undefined;
  try {
    accessSync(exists ? path : dirname(path), constants.W_OK);
    return [ok("checkpoints", `${path} can be written`)];
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    return [
      fail(
        "checkpoints",
        `${path} cannot be written by this user (${code})`,
        "create its folder, and let the server's user append to it; correct ledger.checkpoint_file",
      ),
    ];
  }
}
