import { spawn } from "node:child_process";
import { openFilesReserve } from "../../../base/open-files/reserve.ts";

/** File descriptors that a helper takes while it starts. */
const PER_HELPER = 8;

/**
 * Runs a system command as a program's user. Files that a program left behind are removed in this way, never as root:
 * another program could replace them with links during the removal, and have any file on the machine removed.
 * @param ms how long it may take. The user's own processes can stop it
 * @returns its exit code; null if it was killed or could not be started, as when the user has too many processes
 */
export function runAs(
  { uid, gid }: { readonly uid: number; readonly gid: number },
  [command, ...args]: readonly [string, ...string[]],
  ms: number,
): Promise<number | null> {
  const { promise, resolve } = Promise.withResolvers<number | null>();
  try {
    const helper = openFilesReserve.lend(PER_HELPER, () =>
      spawn(command, args, {
        ...{ uid, gid, cwd: "/", env: { PATH: "/usr/bin:/bin" }, stdio: "ignore" },
        ...{ timeout: ms, killSignal: "SIGKILL" },
      }),
    );
    helper.once("error", () => resolve(null));
    helper.once("exit", resolve);
  } catch {
    resolve(null);
  }
  return promise;
}

/** Directories whose owner may not read them are made readable first. */
const REMOVE = 'chmod -R u+rwx -- "$@"; rm -rf -- "$@"';
const PATHS_AT_ONCE = 200;
const REMOVE_MS = 60_000;

/** Removes files and directories as their owner. What it may not remove stays. */
export async function removeAs(
  user: { readonly uid: number; readonly gid: number },
  paths: readonly string[],
): Promise<void> {
  for (let from = 0; from < paths.length; from += PATHS_AT_ONCE) {
    const some = paths.slice(from, from + PATHS_AT_ONCE);
    await runAs(user, ["/bin/sh", "-c", REMOVE, "sh", ...some], REMOVE_MS);
  }
}
