import type { Log } from "../base/log.ts";

/** How long a server may take to close its store after a fault. What is not written then, the next start makes good. */
const CLOSE_MS = 5_000;

/**
 * What a server does about faults that no part of it has caught. A promise that failed with nobody waiting for it is
 * logged, and the server goes on, so other workspaces are unaffected. After an exception nobody knows what
 * was left half done, so the server closes its store in order and exits with 1, for the service manager to start it again.
 */
export function handleUnexpectedFaults(log: Log, stop: () => Promise<unknown>): void {
  process.on("unhandledRejection", (error) => {
    log.error("a promise failed and nobody waited for it: please report this", { error });
  });
  let isStopping = false;
  process.on("uncaughtException", (error) => {
    log.error("an error was not caught, so the server stops: please report this", { error });
    if (isStopping) return;
    isStopping = true;
    const exit = () => process.exit(1);
    setTimeout(exit, CLOSE_MS);
    stop().then(exit, exit);
  });
}
