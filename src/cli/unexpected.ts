import type { Log } from "../base/log.ts";

/** How long a server may take to close its store after a fault. The next start completes whatever was not written. */
const CLOSE_MS = 5_000;

/**
 * Handles faults that nothing has caught. An unhandled rejection is logged and the server continues, so other
 * workspaces are unaffected. After an uncaught exception the state is unknown, so the server closes its store and
 * exits with 1, for the service manager to restart it.
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
