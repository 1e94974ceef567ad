import type { Log } from "../base/log.ts";
import { closeFiles, isOpenToOthers, prepareDirectory } from "./directory.ts";
import { DirectoryInUse, type DirectoryLock, lockDirectory } from "./lock.ts";

/**
 * Creates the data directory if necessary, closes its files to other users, and locks it for this process.
 * @throws OperatorError if it cannot be written. @throws DirectoryInUse
 */
export function claimDirectory(directory: string, log: Log): DirectoryLock {
  prepareDirectory(directory);
  if (isOpenToOthers(directory)) {
    log.warn("other users may access the data directory; run chmod 700 on it", { data: directory });
  }
  const open = closeFiles(directory);
  if (open.length > 0)
    log.warn("other users may access files in the data directory; run chmod 600 on them", { files: open });
  const lock = lockDirectory(directory);
  if (!lock) throw new DirectoryInUse(directory);
  return lock;
}
