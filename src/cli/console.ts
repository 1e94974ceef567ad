import type { Command } from "commander";
import { withServer } from "./operator.ts";
import { type ConfigOptions, command, resolveConfig } from "./options.ts";
import { print, printJson } from "./output.ts";

interface ConsoleVerbOptions extends ConfigOptions {
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
The link works once, within 30 minutes, and signs in with the workspace's newest admin token that does not
name a person or act as an agent. Anyone with the link can use it, so do not post it in chats or tickets. It
becomes invalid when the server stops or the token's secret changes.`,
    )
    .action(async ({ workspace, json, ...options }: ConsoleVerbOptions) => {
      const { config } = await resolveConfig(options);
      const link = await withServer(config, workspace, (api) =>
        api.json<{ url: string; expires_at: string }>("POST", "/operator/console-links", {}),
      );
      if (json) printJson(link);
      else print(link.url);
    });
}
