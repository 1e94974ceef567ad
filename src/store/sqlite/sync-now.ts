import { fdatasyncSync, fsyncSync } from "node:fs";

/** Syncs a file, and returns the error's code, or null if everything written to it so far is on disk. */
export function syncNow(descriptor: number): string | null {
  try {
    // Apple's fdatasync may leave out a file's new size.
    if (process.platform === "darwin") fsyncSync(descriptor);
    else fdatasyncSync(descriptor);
    return null;
  } catch (error) {
    return error instanceof Error && "code" in error ? String(error.code) : String(error);
  }
}
