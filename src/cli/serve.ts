import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { systemClock } from "../base/clock.ts";
import { OperatorError } from "../base/errors.ts";
import { createLog } from "../base/log.ts";
import type { Gateway } from "../gateway.ts";
import type { ReopenReason } from "../store/file-store.ts";
import { hideMemory } from "./hide-memory.ts";
import { type ConfigOptions, command, resolveConfig } from "./options.ts";
import { print } from "./output.ts";
import { handleUnexpectedFaults } from "./unexpected.ts";

export function serveCommand(): Command {
  return command("serve", "run the server")
    .option("--listen <host:port>", "address to listen on (default 127.0.0.1:8420, or GATEHOUSE_LISTEN)")
    .addHelpText(
      "after",
      `
The first start creates the workspace "default" and an admin token. It is printed once on a terminal, else
written to admin.token in the data directory (mode 0600). GATEHOUSE_ADMIN_TOKEN sets it instead, for
unattended starts.
On a terminal it also prints a one-time link that signs a browser in to the console; "gatehouse console"
prints another.

SIGTERM and SIGINT stop the server cleanly: it accepts no new work and gives calls in progress drain_seconds
(default 10) to finish. The next start resumes the rest. A second signal skips the wait.

If another program writes to the database, the server stops with exit code 1; start it again.`,
    )
    .action(serve);
}

async function serve(options: ConfigOptions): Promise<void> {
  // Before anything slow, because a service manager may send a signal at any time.
  const opened: { gateway: Gateway | null } = { gateway: null };
  stopOnSignals(opened);
  const { config } = await resolveConfig(options);
  const log = createLog(config.logLevel, systemClock);
  handleUnexpectedFaults(log, async () => opened.gateway?.stop());
  if (process.platform === "linux" && !hideMemory()) {
    log.warn("other processes of this user can read this server's memory and environment");
  }
  // Loaded on demand: most commands do not need it, and it is most of the program.
  const { openGateway } = await import("../gateway.ts");
  const gateway = await openGateway(config, { handOverAdmin: (secret) => handOver(secret, config.dataDir) });
  opened.gateway = gateway;
  const url = await start(gateway);
  if (process.stdout.isTTY) {
    print(`Gatehouse is running at ${url}\nDocumentation: ${url}/docs`);
    // Only to a terminal, because logs are stored.
    const link = await gateway.consoleLink();
    if (link !== null) print(`Console: ${link}\n(signs in once, within 30 minutes)`);
  }
  await endToReopen(gateway, await gateway.mustReopen);
}

/** How long a stop may take when nobody is waiting for it. The next start completes whatever was not written. */
const HURRIED_STOP_MS = 5_000;

const REOPEN_ERRORS: Record<ReopenReason, OperatorError> = {
  foreign_write: new OperatorError(
    "another program has written to the database while the server was running, or may have, so the server has stopped; a row that was changed could have reached a model",
    "stop that program, then start the server again: the start compares what is stored with its seals and the ledger, and resumes the tasks",
  ),
  sync_failed: new OperatorError(
    "the disk failed to keep what was written to the database's log, so the server has stopped; whether the last calls were carried out is unknown",
    "check the disk, for example with dmesg, then start the server again: the start compares what is stored with the ledger, and resumes the tasks",
  ),
};

/**
 * Stops a server that refuses all writes, so that the next start compares what is stored and resumes its tasks.
 * @throws OperatorError always, for the exit code and the message
 */
async function endToReopen(gateway: Gateway, reason: ReopenReason): Promise<never> {
  const error = REOPEN_ERRORS[reason];
  setTimeout(() => process.exit(error.exitCode), HURRIED_STOP_MS).unref();
  await gateway.stop();
  throw error;
}

function stopOnSignals(opened: { readonly gateway: Gateway | null }): void {
  let signals = 0;
  const hurried = Promise.withResolvers<void>();
  async function stop(signal: string): Promise<void> {
    signals += 1;
    const { gateway } = opened;
    // It has not answered anyone yet.
    if (!gateway) process.exit(0);
    // A third signal ends the process at once.
    if (signals > 2) process.exit(1);
    if (signals === 2) {
      hurried.resolve();
      setTimeout(() => process.exit(1), HURRIED_STOP_MS).unref();
      return;
    }
    try {
      await Promise.race([gateway.drain(), hurried.promise]);
      await gateway.stop();
      process.exit(0);
    } catch (error) {
      process.stderr.write(`gatehouse: ${signal}: the stop failed: ${String(error)}\n`);
      process.exit(1);
    }
  }
  process.on("SIGTERM", () => void stop("SIGTERM"));
  process.on("SIGINT", () => void stop("SIGINT"));
}

/** Shows the first admin secret once: on the terminal, or in a file that only the owner can read. */
function handOver(secret: string, dataDir: string): void {
  if (process.stdout.isTTY) {
    print(`Admin token, shown this once:\n\n  ${secret}\n`);
    return;
  }
  const path = join(dataDir, "admin.token");
  // An existing file would keep its mode, and others might be able to read it.
  rmSync(path, { force: true });
  writeFileSync(path, `${secret}\n`, { mode: 0o600, flag: "wx" });
}

/** Starts listening. If that fails (the address is in use), no task is left running. */
async function start(gateway: Gateway): Promise<string> {
  try {
    return await gateway.start();
  } catch (error) {
    await gateway.stop().catch((second: unknown) => {
      // The first failure caused both, so it is the one reported.
      process.stderr.write(`gatehouse: the parts already started could not be stopped: ${String(second)}\n`);
    });
    throw error;
  }
}
