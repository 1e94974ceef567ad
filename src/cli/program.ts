import { Command } from "commander";
import { VERSION } from "../base/version.ts";
import { configCommand } from "./config.ts";
import { connectorCommand } from "./connector/command.ts";
import { consoleCommand } from "./console.ts";
import { ledgerCommand } from "./ledger/command.ts";
import { mcpCommand } from "./mcp.ts";
import { modelsCommand } from "./models.ts";
import { resealCommand } from "./reseal.ts";
import { serveCommand } from "./serve.ts";
import { resumeAllCommand, stopAllCommand } from "./stop.ts";
import { taskCommand } from "./task.ts";
import { tokenCommand } from "./token.ts";
import { vaultCommand } from "./vault/command.ts";
import { versionCommand } from "./version.ts";
import { workspaceCommand } from "./workspace.ts";

const EXAMPLES = `
Examples:
  gatehouse serve                                   serve on 127.0.0.1:8420, data in ./gatehouse-data
  gatehouse token create --name ci --scope tasks:write --scope tasks:read
  gatehouse token create --name helper --agent helper --expires 90d
  gatehouse task run --agent helper "What is new?"  dispatch a task and stream its answer
  gatehouse vault add ./docs --scope support        add a folder's documents, which agents then search
  gatehouse vault search "How long do refunds take?"
  gatehouse connector add files -- npx -y @modelcontextprotocol/server-filesystem /srv/docs
  gatehouse models                                  configured models, prices, and which can be reached
  gatehouse config show                             every setting, its value, and where it comes from

Commands work whether or not a server is running on the data directory.
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 could not be verified.`;

/** The complete command line. */
export function createProgram(): Command {
  const program = new Command("gatehouse")
    .description(
      "The gate between a company and its AI agents: which models, tools and documents each may use, and the evidence.",
    )
    .version(VERSION, "-V, --version", "print the version")
    .helpOption("-h, --help", "show help")
    .helpCommand("help [command]", "show help for a command")
    .showHelpAfterError("(add --help for usage)")
    .addHelpText("after", EXAMPLES)
    .configureHelp({ sortSubcommands: false, showGlobalOptions: false });
  for (const command of [
    serveCommand(),
    consoleCommand(),
    mcpCommand(),
    taskCommand(),
    vaultCommand(),
    tokenCommand(),
    workspaceCommand(),
    stopAllCommand(),
    resumeAllCommand(),
    connectorCommand(),
    ledgerCommand(),
    resealCommand(),
    configCommand(),
    modelsCommand(),
    versionCommand(),
  ]) {
    program.addCommand(command);
  }
  return program.exitOverride();
}
