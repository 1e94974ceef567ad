import type { Command } from "commander";
import { withServer } from "./operator.ts";
import { type ConfigOptions, command, resolveConfig } from "./options.ts";
import { print, printJson } from "./output.ts";

interface Options extends ConfigOptions {
  readonly workspace: string;
  readonly json?: boolean;
}

/** `console`: signs in without a token, for users of this machine. */
export function consoleCommand(): Command {
  return command("console", "print a link that signs a browser in to the running server's console")
    .option("--workspace <name>", "workspace", "default")
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
The link is good once, within 30 minutes, and signs in as the newest admin token of the workspace that names
no person and acts as no agent. Whoever has it can use it: it is not for chats or tickets. It ends with the
server's process, and with the token's secret.`,
    )
    .action(async ({ workspace, json, ...options }: Options) => {
      const { config } = await resolveConfig(options);
      const link = await withServer(config, workspace, (api) =>
        api.json<{ url: string; expires_at: string }>("POST", "/operator/console-links", {}),
      );
      if (json) printJson(link);
      else print(link.url);
    });
}
