import { existsSync } from "node:fs";
import type { Command } from "commander";
import { systemClock } from "../base/clock.ts";
import { OperatorError } from "../base/errors.ts";
import { createLog } from "../base/log.ts";
import { databasePath } from "../store/directory.ts";
import { type ConfigOptions, command, resolveConfig } from "./options.ts";
import { print } from "./output.ts";

/** `reseal`: for operators who have lost secrets.key or deliberately restored an older database. */
export function resealCommand(): Command {
  return command("reseal", "seal the rows of the database as they are, with the current key")
    .addHelpText(
      "after",
      `
Tokens, agents, tasks and other rows that carry authority are sealed with secrets.key (or master_key), so
that changes in the file are detected. Use this if that key is lost, or if a start reports rows that you have
changed yourself. Review the rows first: all of them count from then on. The command is recorded in every
ledger. Stop the server first.`,
    )
    .action(reseal);
}

async function reseal(options: ConfigOptions): Promise<void> {
  const { config } = await resolveConfig(options);
  if (!existsSync(databasePath(config.dataDir))) {
    throw new OperatorError(
      `there is no database in ${config.dataDir}`,
      "choose the directory with --data",
      2,
    );
  }
  const { openGateway } = await import("../gateway.ts");
  const gateway = await openGateway(config, { log: createLog("warn", systemClock), acceptRows: true });
  await gateway.stop();
  print("The rows are sealed as they are.");
}
